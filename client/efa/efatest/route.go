package efatest

import (
	"net/http"
	"path"
)

// Op is one operation of the API.
type Op string

// The operations that the documents name. Everything else is OpUndocumented,
// is a violation, and answers 404.
const (
	OpAny           Op = "" // in a [Fault]: every operation
	OpEvents        Op = "list events"
	OpSend          Op = "send message"
	OpThread        Op = "list thread"
	OpBody          Op = "read body"
	OpInbound       Op = "simulate inbound"
	OpWebhooks      Op = "list webhooks"
	OpWebhookCreate Op = "create webhook"
	OpWebhookTest   Op = "test webhook"
	OpWebhookDeliv  Op = "list deliveries"
	OpWebhookCtrl   Op = "control webhook"
	OpUndocumented  Op = "undocumented"
)

// Point is a moment within a request.
type Point string

// The moments at which hooks are called.
const (
	// BeforeEffect: the request has arrived, nothing has happened.
	BeforeEffect Point = "before effect"
	// AfterEffect: it is done and recorded, no byte of the answer has left. A
	// second request with the same Idempotency-Key is in progress meanwhile.
	AfterEffect Point = "after effect"
	// AfterAnswer: the last byte of the answer has left.
	AfterAnswer Point = "after answer"
)

// OnRequest adds a hook that is called at each point of each request. It may
// wait, call the server's methods, or panic with [http.ErrAbortHandler] to cut
// the connection there. r.PathValue knows "inbox", "thread", "message" and
// "webhook".
func (s *Server) OnRequest(hook func(op Op, at Point, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks[:len(s.hooks):len(s.hooks)], hook)
}

func (s *Server) at(p Point, x *exchange) {
	s.mu.Lock()
	hooks := s.hooks
	s.mu.Unlock()
	for _, hook := range hooks {
		hook(x.op, p, x.r)
	}
}

// route is an operation: what it needs and what it does.
type route struct {
	op    Op
	scope string
	act   func(*exchange) answer
}

func (s *Server) routes() *http.ServeMux {
	const (
		project = "/v1/projects/{project}"
		inbox   = project + "/inboxes/{inbox}"
		webhook = project + "/webhooks/{webhook}"
	)
	mux := http.NewServeMux()
	for pattern, rt := range map[string]route{
		"GET " + project + "/events":                  {OpEvents, ScopeEventsRead, s.listEvents},
		"POST " + project + "/test/inbound":           {OpInbound, "", s.simulateInbound},
		"POST " + inbox + "/messages":                 {OpSend, ScopeMessagesSend, s.sendMessage},
		"GET " + inbox + "/threads/{thread}/messages": {OpThread, ScopeMessagesRead, s.listThread},
		"GET " + inbox + "/messages/{message}/body":   {OpBody, ScopeMessagesRead, s.readBody},
		"GET " + project + "/webhooks":                {OpWebhooks, ScopeWebhooksRead, s.listWebhooks},
		"POST " + project + "/webhooks":               {OpWebhookCreate, ScopeWebhooksManage, s.createWebhook},
		"POST " + webhook + "/test":                   {OpWebhookTest, ScopeWebhooksManage, s.testWebhook},
		"GET " + webhook + "/deliveries":              {OpWebhookDeliv, ScopeWebhooksRead, s.listDeliveries},
		"POST " + webhook + "/control":                {OpWebhookCtrl, ScopeWebhooksManage, s.controlWebhook},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, rt) })
	}
	return mux
}

// ServeHTTP is the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.running.Done()
	// The mux would answer a HEAD as a GET, redirect an unclean path, and
	// answer 405: all three are requests that no document names.
	_, pattern := s.mux.Handler(r)
	if pattern == "" || r.Method == http.MethodHead || path.Clean(r.URL.Path) != r.URL.Path {
		s.serve(w, r, route{OpUndocumented, "", s.undocumented})
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

func (s *Server) undocumented(x *exchange) answer {
	s.violate("undocumented request: %s %s", x.r.Method, x.r.URL.Path)
	return failure(http.StatusNotFound, codeNotFound, "no such endpoint")
}
