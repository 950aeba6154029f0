package goshentest

import (
	"net/http"
	"slices"
)

// Op is one operation of the API.
type Op string

// The operations. OpUndocumented is every request that no document names: a
// violation, answered 404.
const (
	OpAny           Op = "" // in a [Fault]: every operation
	OpListInboxes   Op = "listInboxes"
	OpGetInbox      Op = "getInbox"
	OpListMessages  Op = "listMessages"
	OpSearch        Op = "searchMessages"
	OpGetMessage    Op = "getMessage"
	OpSend          Op = "send"
	OpReply         Op = "reply"
	OpLabelMessage  Op = "updateMessageLabels"
	OpListThreads   Op = "listThreads"
	OpGetThread     Op = "getThread"
	OpLabelThread   Op = "updateThreadLabels"
	OpNotConfigured Op = "not configured" // documented, and not played here
	OpUndocumented  Op = "undocumented"
)

// Point is a moment within a request.
type Point string

// The moments at which hooks are called.
const (
	// BeforeEffect: the request has arrived, nothing has happened.
	BeforeEffect Point = "before effect"
	// AfterEffect: it is done and recorded, no byte of the answer has left. A
	// second send with the same Idempotency-Key is pending meanwhile.
	AfterEffect Point = "after effect"
)

// OnRequest adds a hook that is called at each point of each request. It may
// wait, call the server's methods, or panic with [http.ErrAbortHandler] to cut
// the connection there.
func (s *Server) OnRequest(hook func(op Op, at Point, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(slices.Clone(s.hooks), hook)
}

func (s *Server) at(p Point, x *exchange) {
	s.mu.Lock()
	hooks := s.hooks
	s.mu.Unlock()
	for _, hook := range hooks {
		hook(x.op, p, x.r)
	}
}

// route is an operation: what it needs, the query parameters it knows, and
// what it does.
type route struct {
	op    Op
	scope string
	query []string
	act   func(*exchange) answer
}

func (s *Server) routes() *http.ServeMux {
	const (
		inbox   = "/v1/inboxes/{inbox}"
		message = inbox + "/messages/{message}"
		thread  = inbox + "/threads/{thread}"
	)
	read, write, send, inboxes := ScopeMessagesRead, ScopeMessagesWrite, ScopeMessagesSend, ScopeInboxesRead
	paged := []string{"limit", "pageToken", "labels", "category", "needsReply", "urgency"}
	off := route{OpNotConfigured, "", nil, s.notConfigured}
	mux := http.NewServeMux()
	for pattern, rt := range map[string]route{
		"GET /v1/inboxes":                  {OpListInboxes, inboxes, []string{"limit", "pageToken", "group"}, s.listInboxes},
		"GET " + inbox:                     {OpGetInbox, inboxes, nil, s.getInbox},
		"GET " + inbox + "/messages":       {OpListMessages, read, paged, s.listMessages},
		"GET " + message:                   {OpGetMessage, read, []string{"includeHtml"}, s.getMessage},
		"POST " + message + "/reply":       {OpReply, send, nil, s.reply},
		"PATCH " + message + "/labels":     {OpLabelMessage, write, nil, s.labelMessage},
		"GET " + inbox + "/threads":        {OpListThreads, read, append([]string{"includeTrash"}, paged...), s.listThreads},
		"GET " + thread:                    {OpGetThread, read, []string{"includeBodies"}, s.getThread},
		"PATCH " + thread + "/labels":      {OpLabelThread, write, nil, s.labelThread},
		"POST " + inbox + "/messages/send": {OpSend, send, nil, s.send},
		"GET " + inbox + "/messages/search": {
			OpSearch, read, append([]string{"query"}, paged...), s.listMessages,
		},

		"POST /v1/inboxes":         off,
		"PATCH " + inbox:           off,
		"DELETE " + inbox:          off,
		"POST " + inbox + "/setup": off,
		"GET /v1/usage":            off,
		"GET " + message + "/attachments/{attachment}": off,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, rt) })
	}
	return mux
}

// ServeHTTP is the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.running.Add(1)
	}
	s.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler)
	}
	defer s.running.Done()
	if _, pattern := s.mux.Handler(r); pattern == "" || r.Method == http.MethodHead {
		s.serve(w, r, route{op: OpUndocumented, act: s.undocumented})
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) undocumented(x *exchange) answer {
	s.violate("undocumented request: %s %s", x.r.Method, x.r.URL.Path)
	return failure(http.StatusNotFound, codeNotFound)
}

func (s *Server) notConfigured(*exchange) answer {
	return failure(http.StatusServiceUnavailable, "not_configured")
}
