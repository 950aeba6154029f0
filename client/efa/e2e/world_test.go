package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/verify"
)

// setup is what a world is made of. The zero value is a project of one inbox
// whose events are all to be handled, as the provider pages them.
type setup struct {
	provider efatest.Config
	start    events.Start  // FromBeginning
	page     int           // the most events of a page; 0 is the provider's 100
	commit   int           // pages a commit; 0 is the default
	tries    int           // of a request; 1
	timeout  time.Duration // of a request; 0 is the default
	every    time.Duration // between two sweeps of Run; 0 is the default
	live     bool          // time is the test's own, and webhooks come by themselves
}

// world is a provider, whose time is moved by hand, and a stream on a store.
// One process after another receives it, or two at once.
type world struct {
	setup
	store  *store
	ctx    context.Context // the test's
	stream string
	srv    *efatest.Server
	atDoor atomic.Pointer[process] // where webhooks arrive

	mu       sync.Mutex
	fails    map[string]bool // the handler, on these
	expired  []efatest.Event // what the provider no longer has
	excused  map[string]bool // of which these had not been handled
	loss     events.Loss     // which is to be told of
	wasLate  map[string]bool // the cursor did not show these at once
	asked    bool            // history was asked for
	allShown time.Time       // when the cursor shows everything that happened
}

var streams atomic.Int64

// newWorld returns an error where a test's goroutine cannot fail the test.
func newWorld(ctx context.Context, s *store, with setup) (*world, error) {
	with.provider.InMemory, with.provider.Manual, with.provider.PushTimeout = true, !with.live, time.Minute
	with.provider.Seed = cmp.Or(with.provider.Seed, 1)
	with.start = cmp.Or(with.start, events.FromBeginning)
	with.tries = cmp.Or(with.tries, 1)
	w := &world{
		setup: with, store: s, ctx: ctx, stream: "mail" + strconv.FormatInt(streams.Add(1), 10),
		fails: map[string]bool{}, excused: map[string]bool{}, wasLate: map[string]bool{},
	}
	return w, w.begin()
}

func begin(t *testing.T, s *store, with setup) *world {
	t.Helper()
	w, err := newWorld(t.Context(), s, with)
	require.NoError(t, err)
	t.Cleanup(func() {
		w.srv.Check(t)
		w.srv.Close()
	})
	return w
}

// begin starts the provider.
func (w *world) begin() (err error) {
	if w.srv, err = efatest.Start(w.provider); err != nil {
		return err
	}
	w.srv.OnRequest(func(_ efatest.Op, at efatest.Point, r *http.Request) {
		if boundary(r.Context(), "http "+string(at)) != nil {
			panic(http.ErrAbortHandler)
		}
	})
	return nil
}

// process is one life of a program: a client, an Inbox and both doors.
type process struct {
	*world
	i       int  // of those at work at one time
	rival   bool // another one is at work
	hook    sqldb.Hook
	inbox   *dedupe.Inbox
	sweeper *events.Sweeper
	handler *events.Handler
}

// open starts a process. hook is called at each of its boundaries.
func (w *world) open(i int, key string, hook sqldb.Hook) (*process, error) {
	c, err := efa.New(efa.Config{
		Project: w.srv.Project(), Key: key, BaseURL: w.srv.URL(), Stream: w.stream, Tries: w.tries, Timeout: w.timeout,
		HTTPClient: &http.Client{Transport: pager{w.srv.Transport(), w.page}},
	})
	if err != nil {
		return nil, err
	}
	p := &process{world: w, i: i, hook: hook}
	p.inbox, err = w.store.inbox(i, dedupe.Config{Stream: c.Stream(), CommitTimeout: time.Minute, LockTimeout: time.Minute}, w.handle)
	if err != nil {
		return nil, err
	}
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(w.srv.Secret())}, Now: w.srv.Now})
	if err != nil {
		return nil, err
	}
	if p.handler, err = events.NewHandler(v, efa.Profile, p.inbox, events.HandlerConfig{Timeout: time.Minute}); err != nil {
		return nil, err
	}
	p.sweeper, err = events.NewSweeper(c.Source(), p.inbox, events.SweeperConfig{Start: w.start, PagesPerCommit: w.commit, Every: w.every})
	return p, err
}

// process starts a process where webhooks arrive from now on.
func (w *world) process(t *testing.T) *process {
	t.Helper()
	p, err := w.open(0, w.srv.Key(), nil)
	require.NoError(t, err)
	w.atDoor.Store(p)
	return p
}

// handle is the user's handler: a row an event, in the transaction it is given.
func (w *world) handle(ctx context.Context, exec exec, fresh []events.Event) error {
	for _, ev := range fresh {
		if err := boundary(ctx, "handler"); err != nil {
			return err
		}
		if err := exec("insert into "+w.store.effects+" (stream, id, at) values ($1, $2, $3)", w.stream, ev.ID, w.srv.Now().UnixMicro()); err != nil {
			return err
		}
		if w.failsOn(ev.ID) {
			return fmt.Errorf("the handler fails on %s", ev.ID)
		}
	}
	return boundary(ctx, "handled")
}

func (w *world) failsOn(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fails[id]
}

// fail makes the handler fail on events, too.
func (w *world) fail(ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.fails[id] = true
	}
}

// heal makes it fail on none any more.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.fails)
}

// door is where webhooks arrive: at whichever process runs.
func (w *world) door(rw http.ResponseWriter, r *http.Request) {
	p := w.atDoor.Load()
	ctx := p.with(r.Context())
	if boundary(ctx, "push arrived") != nil {
		panic(http.ErrAbortHandler)
	}
	status := &statusWriter{ResponseWriter: rw}
	p.handler.ServeHTTP(status, r.WithContext(ctx))
	if boundary(ctx, "push taken") != nil {
		panic(http.ErrAbortHandler)
	}
	rw.WriteHeader(status.code)
	if http.NewResponseController(rw).Flush() != nil || boundary(ctx, "push answered") != nil {
		panic(http.ErrAbortHandler)
	}
}

// statusWriter keeps an answer back. It has no body.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) { w.code = code }

// with is ctx as the process's own.
func (p *process) with(ctx context.Context) context.Context {
	if p.hook == nil {
		return ctx
	}
	return sqldb.WithHook(ctx, p.hook)
}

// boundary is a point of ours beside those of the database.
func boundary(ctx context.Context, point string) error {
	if hook := sqldb.HookOf(ctx); hook != nil {
		return hook(point)
	}
	return nil
}

// errCrash is what everything returns in a process that has ended: to it, its
// database is gone.
var errCrash = fmt.Errorf("crash: %w", io.ErrUnexpectedEOF)

// pager asks for shorter pages, so that few events have several.
type pager struct {
	next http.RoundTripper
	most int
}

func (p pager) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if n, _ := strconv.Atoi(q.Get("limit")); p.most > 0 && n > p.most {
		r = r.Clone(r.Context())
		q.Set("limit", strconv.Itoa(p.most))
		r.URL.RawQuery = q.Encode()
	}
	return p.next.RoundTrip(r)
}
