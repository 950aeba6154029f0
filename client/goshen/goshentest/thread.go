package goshentest

import (
	"net/http"
	"slices"
	"strconv"
)

const (
	maxThread       = 500
	maxThreadBodies = 8 << 20
)

// threadOf is a thread's messages, oldest first. It is called with mu held.
func (s *Server) threadOf(inbox, id string) []*message {
	var list []*message
	for _, m := range s.messages {
		if m.inbox == inbox && m.thread == id {
			list = append(list, m)
		}
	}
	return list
}

// resolveThread is the thread that mail with such references joins; the last
// of them that is known wins, so In-Reply-To, which stands last, comes first.
// A parent in quarantine does not count. It is called with mu held.
func (s *Server) resolveThread(inbox string, references []string) string {
	for _, id := range slices.Backward(references) {
		if m := s.find(inbox, id); m != nil && !m.quarantined() {
			return m.thread
		}
	}
	return s.newUUID()
}

func threadView(list []*message) object {
	last := list[len(list)-1]
	var labels, senders, recipients []string
	for _, m := range list {
		labels = union(labels, m.labels)
		senders = union(senders, []string{m.from})
		recipients = union(recipients, m.to)
	}
	return object{
		"threadId": last.thread, "inboxId": last.inbox, "subject": last.subject,
		"preview": last.summary()["preview"], "timestamp": stamp(last.at), "messageCount": len(list),
		"labels": some(labels), "senders": some(senders), "recipients": some(recipients),
	}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func (s *Server) getThread(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	bodies, err := strconv.ParseBool(orDefault(x.r.URL.Query().Get("includeBodies"), "false"))
	if err != nil {
		s.violateLocked("%s: includeBodies is neither true nor false", x.op)
		return failure(http.StatusBadRequest, codeInvalid)
	}
	list := s.threadOf(x.inbox(), x.r.PathValue("thread"))
	size := 0
	rows := []object{}
	for _, m := range list {
		size += len(m.text) + len(m.html)
		if bodies {
			rows = append(rows, m.view(true))
		} else {
			rows = append(rows, m.summary())
		}
	}
	switch {
	case len(list) == 0:
		return failure(http.StatusNotFound, codeNotFound)
	case len(list) > maxThread, bodies && size > maxThreadBodies:
		return failure(http.StatusRequestEntityTooLarge, "thread_too_large")
	}
	o := threadView(list)
	o["messages"] = rows
	return ok(o)
}

func (s *Server) listThreads(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	win, problem := s.window(x)
	if problem != "" {
		s.violateLocked("%s: %s", x.op, problem)
		return failure(http.StatusBadRequest, codeInvalid)
	}
	trash := x.r.URL.Query().Get("includeTrash") == "true"
	var rows []object
	seen := map[string]bool{}
	for _, m := range slices.Backward(s.messages) { // the latest of a thread comes first
		if m.inbox != x.inbox() || seen[m.thread] || m.quarantined() {
			continue
		}
		seen[m.thread] = true
		visible := slices.DeleteFunc(s.threadOf(m.inbox, m.thread), (*message).quarantined)
		o := threadView(visible)
		o["lastMessageId"] = visible[len(visible)-1].wireID
		labels := o["labels"].([]string)
		if !trash && slices.Contains(labels, labelTrash) {
			continue
		}
		if !slices.ContainsFunc(x.r.URL.Query()["labels"], func(l string) bool { return !slices.Contains(labels, l) }) {
			rows = append(rows, o)
		}
	}
	return s.page(x, "threads", win, rows)
}
