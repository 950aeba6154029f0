package goshentest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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
}

// Server is one account at Goshen Email. All its methods may be called at any
// time from any goroutine, also from its hooks.
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
	keys   []Key

	messages []*message      // in the order in which they were stored
	relabels int             // how often labels or what is listed changed other than by mail that came
	tokens   map[string]page // page tokens that were handed out
	sends    []*send
	bounces  func(string) bool

	webhook    *endpoint
	secret     string
	deliveries []*delivery
	stop       context.CancelFunc // ends the dispatcher; nil while it does not run

	faults      []*Armed
	eventFaults []*Armed
	hooks       []func(Op, Point, *http.Request)
	onSend      []func(Send)

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
		rng:    rand.New(rand.NewPCG(cfg.Seed, 0x905e)), //nolint:gosec // a seed is the point
		tokens: map[string]page{},
	}
	s.secret = s.newSecret()
	var err error
	if s.cfg, err = cfg.withDefaults(fmt.Sprintf("%016x", s.rng.Uint64())); err != nil {
		return nil, err
	}
	s.keys = slices.Clone(s.cfg.Keys)
	s.mux = s.routes()
	s.pusher = &http.Transport{}
	if s.cfg.InMemory {
		s.base = "http://goshen.invalid/v1"
		s.client = &http.Client{Transport: InMemory(s)}
		return s, nil
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	l, err := net.Listen("tcp", s.cfg.Addr) //nolint:noctx // a socket of ours
	if err != nil {
		return fmt.Errorf("goshentest: listen: %w", err)
	}
	s.base = "http://" + l.Addr().String() + "/v1"
	s.client = &http.Client{Transport: &http.Transport{}}
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

// Key is the first key's token.
func (s *Server) Key() string { return s.cfg.Keys[0].Token }

// Inbox is the first inbox's address, which is its ID.
func (s *Server) Inbox() string { return s.cfg.Inboxes[0] }

// Secret is the webhook's signing secret: "whsec_" and base64.
func (s *Server) Secret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

// RotateSecret replaces the signing secret, as the operator's doing: at once,
// for all that is pending too, without overlap.
func (s *Server) RotateSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = s.newSecret()
	return s.secret
}

// Handler is the API, for use without the server's own socket.
func (s *Server) Handler() http.Handler { return s }

// Transport calls the API in memory, whatever the request's host: no socket,
// so it works inside testing/synctest.
func (s *Server) Transport() http.RoundTripper { return InMemory(s) }

// Client reaches the server at [Server.URL], over its socket if it has one.
func (s *Server) Client() *http.Client { return s.client }

// AddKey adds a key to the account.
func (s *Server) AddKey(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, k)
}

// RevokeKey makes a token unknown.
func (s *Server) RevokeKey(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k Key) bool { return k.Token == token })
}

// newUUID is called with mu held, or before anybody else has the server.
func (s *Server) newUUID() string {
	a, b := s.rng.Uint64(), s.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// newSecret is called like newUUID. The real key has 32 bytes too.
func (s *Server) newSecret() string {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(s.rng.Uint32()) //nolint:gosec // its lowest bits
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}
