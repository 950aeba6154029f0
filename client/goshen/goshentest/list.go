package goshentest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// page remembers what a token was handed out for.
type page struct {
	list     string // the list without its token
	relabels int    // the server's, at that time
}

// window is the part of a list that a request asks for.
type window struct {
	offset, limit int
}

// window reads limit and pageToken; a problem in words if they are at fault.
// It is called with mu held.
func (s *Server) window(x *exchange) (window, string) {
	q := x.r.URL.Query()
	win := window{limit: 20}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return win, "limit is not 1 to 100"
		}
		win.limit = n
	}
	token := q.Get("pageToken")
	if token == "" {
		return win, ""
	}
	b, _ := base64.RawURLEncoding.DecodeString(token)
	var t struct{ Offset int }
	given, known := s.tokens[listOf(x)+" "+token]
	if json.Unmarshal(b, &t) != nil || !known {
		return win, "pageToken is not one that was given for this list"
	}
	if len(q["labels"]) > 0 && given.relabels != s.relabels {
		s.violateLocked("%s: a page is asked for by its token after labels changed: messages may be passed over", x.op)
	}
	win.offset = t.Offset
	return win, ""
}

// listOf is a request's list without its page.
func listOf(x *exchange) string {
	q := x.r.URL.Query()
	q.Del("pageToken")
	return x.r.URL.EscapedPath() + "?" + url.Values(q).Encode()
}

// page answers the rows of a window, which is an offset as in the real
// provider. It is called with mu held.
func (s *Server) page(x *exchange, name string, win window, rows []object) answer {
	from := min(win.offset, len(rows))
	to := min(from+win.limit, len(rows))
	o := object{name: append([]object{}, rows[from:to]...)}
	if to < len(rows) {
		token := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"offset":%d}`, to))
		s.tokens[listOf(x)+" "+token] = page{listOf(x), s.relabels}
		o["nextPageToken"] = token
	}
	return ok(o)
}

// listMessages also searches: by the words of the query, all of which must
// stand in subject or text.
func (s *Server) listMessages(x *exchange) answer {
	s.mu.Lock()
	win, problem := s.window(x)
	var rows []object
	for _, m := range slices.Backward(s.messages) {
		if m.inbox == x.inbox() && m.listed(x.r.URL.Query()["labels"]) && m.matches(x.r.URL.Query().Get("query")) {
			rows = append(rows, m.summary())
		}
	}
	defer s.mu.Unlock()
	if x.op == OpSearch && x.r.URL.Query().Get("query") == "" {
		problem = "query is required"
	}
	if problem != "" {
		s.violateLocked("%s: %s", x.op, problem)
		return failure(400, codeInvalid)
	}
	return s.page(x, "messages", win, rows)
}

// listed says whether a list that asks for labels shows the message.
func (m *message) listed(labels []string) bool {
	return m.has(labels...) &&
		(!m.quarantined() || slices.Contains(labels, labelQuarantined)) &&
		(!m.has(labelTrash) || slices.Contains(labels, labelTrash))
}

func (m *message) matches(query string) bool {
	text := strings.ToLower(m.subject + " " + m.text)
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
