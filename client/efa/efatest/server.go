package efatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TB is the part of *testing.T that [NewServer] and [Server.Check] use.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Server is one project at Email for Agents. All its methods may be called at
// any time from any goroutine, also from its hooks.
type Server struct {
	cfg     Config
	base    string
	mux     *http.ServeMux
	http    *http.Server    // nil in memory
	client  *http.Client    // reaches the server
	pusher  *http.Transport // reaches webhooks
	offset  atomic.Int64    // what Advance added to cfg.Now
	done    chan struct{}   // closed by Close
	wake    chan struct{}   // something may be due earlier than the dispatcher thinks
	running sync.WaitGroup  // requests and the dispatcher

	mu     sync.Mutex
	closed bool
	rng    *rand.Rand
	ids    map[string]int
	keys   []Key

	events  []event // in rising sequence
	lastSeq int64   // of events

	messages map[string]*message
	threads  map[string]*thread
	msgSeq   int64 // of messages

	sends     []*send
	byKey     map[string]*send
	approvals map[string]*approval

	endpoints  []*endpoint
	secret     string // of the first endpoint until it exists
	queue      queue
	deliveries []*delivery
	reordered  bool               // some delivery waited for another
	stop       context.CancelFunc // ends the dispatcher; nil while it does not run

	faults      []*Armed
	eventFaults []*Armed
	hooks       []func(Op, Point, *http.Request)
	onSend      []func(Send)
	hold        func(Send) bool
	echo        func(Send) bool

	requests   []Request
	violations []string
}

// NewServer starts a server that ends with the test. A fault in cfg fails the
// test.
func NewServer(tb TB, cfg Config) *Server {
	tb.Helper()
	s, err := Start(cfg)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server outside a test; the caller closes it.
func Start(cfg Config) (*Server, error) {
	s := &Server{
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		rng: rand.New(rand.NewPCG(cfg.Seed, 0xefa)), ids: map[string]int{}, //nolint:gosec // a seed is the point
		messages: map[string]*message{}, threads: map[string]*thread{},
		byKey: map[string]*send{}, approvals: map[string]*approval{},
	}
	s.secret = s.newSecret()
	var err error
	if s.cfg, err = cfg.withDefaults(s.newSecret()[:16]); err != nil {
		return nil, err
	}
	s.keys = s.cfg.Keys
	s.mux = s.routes()
	if s.cfg.InMemory {
		s.base = "http://efa.invalid/v1"
		s.client = &http.Client{Transport: InMemory(s)}
		s.pusher = &http.Transport{}
		return s, nil
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("efatest: listen: %w", err)
	}
	s.base = "http://" + l.Addr().String() + "/v1"
	s.client = &http.Client{Transport: &http.Transport{}}
	s.pusher = &http.Transport{}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.running.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.violate("the server ended: %v", err)
		}
	})
	return nil
}

// Close cuts every connection, ends deliveries, and returns when no goroutine
// of the server is left. A hook that still waits for something keeps it
// waiting.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	close(s.done)
	if s.http != nil {
		_ = s.http.Close() // closes a listener; there is nothing to do about an error
	}
	s.running.Wait()
	s.client.CloseIdleConnections()
	s.pusher.CloseIdleConnections()
}

// URL is the base URL, which ends in /v1.
func (s *Server) URL() string { return s.base }

// Project is the project's ID.
func (s *Server) Project() string { return s.cfg.Project }

// Key is the first key's token.
func (s *Server) Key() string { return s.cfg.Keys[0].Token }

// Secret is the current signing secret of the first webhook, 32 hexadecimal
// characters whose own bytes are the key. It is known before there is one.
func (s *Server) Secret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) > 0 {
		return s.endpoints[0].secret
	}
	return s.secret
}

// Inbox is the first inbox's ID, in the order of the IDs.
func (s *Server) Inbox() string { return slices.Min(slices.Collect(maps.Keys(s.cfg.Inboxes))) }

// Address is the address of an inbox; empty if there is none.
func (s *Server) Address(inbox string) string { return s.cfg.Inboxes[inbox] }

// Handler is the API, for use without the server's own socket.
func (s *Server) Handler() http.Handler { return s }

// Transport calls the API in memory, whatever the request's host: no socket,
// so it works inside testing/synctest.
func (s *Server) Transport() http.RoundTripper { return InMemory(s) }

// Client reaches the server at [Server.URL], over its socket if it has one.
func (s *Server) Client() *http.Client { return s.client }

// AddKey adds a key to the project.
func (s *Server) AddKey(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(slices.Clone(s.keys), k.withDefaults())
}

// RevokeKey makes a token unknown.
func (s *Server) RevokeKey(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(slices.Clone(s.keys), func(k Key) bool { return k.Token == token })
}

// newID is called with mu held, or before anybody else has the server.
func (s *Server) newID(prefix string) string {
	s.ids[prefix]++
	return fmt.Sprintf("%s_%04d%06x", prefix, s.ids[prefix], s.rng.Uint32()&0xffffff)
}

// newSecret is called like newID.
func (s *Server) newSecret() string {
	return fmt.Sprintf("%016x%016x", s.rng.Uint64(), s.rng.Uint64())
}
