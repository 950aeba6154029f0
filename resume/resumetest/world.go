package resumetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// world is what the actors of one run share.
type world struct {
	rig  *rig
	srv  *efatest.Server
	mail *efa.Client

	mu        sync.Mutex
	fed       map[string]events.Event     // handed in at a door, by ID
	taken     map[string]bool             // acknowledged
	inbound   map[string]efatest.Received // by actor and number, so that an actor can be run again
	calls     int64
	steps     map[*process]resume.Step // what Scenario.NewStep has made
	moved     time.Duration            // the clocks, by jumps: the provider's is ahead so much
	requests  int                      // of the provider's, which have been looked at
	before    *tables                  // at the last commit
	readAt    time.Time                // when that was; zero if nothing was read yet
	violation *violation
	trouble   error       // a commit whose check could not be read
	swept     atomic.Bool // up to the head, since the clock was moved
	crashed   bool        // an actor acted again in another process

	jumps     atomic.Int64 // of the clock, begun and ended
	jumpsSeen int64        // at the last look
}

func newWorld(r *rig) (*world, error) {
	cfg := r.scenario.Provider
	cfg.InMemory, cfg.Manual, cfg.Seed = true, true, 1
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	srv, err := efatest.Start(cfg)
	if err != nil {
		return nil, err
	}
	w := &world{
		rig: r, srv: srv, fed: map[string]events.Event{}, taken: map[string]bool{}, inbound: map[string]efatest.Received{},
		steps: map[*process]resume.Step{}, before: &tables{},
	}
	srv.OnRequest(cutAnswer)
	w.mail, err = clientOf(srv)
	return w, err
}

func clientOf(srv *efatest.Server) (*efa.Client, error) {
	return efa.New(efa.Config{BaseURL: srv.URL(), Project: srv.Project(), Key: srv.Key(), HTTPClient: srv.Client(), Tries: 1})
}

// stepOf is the step function of a process, which lives for one run.
func (w *world) stepOf(p *process) resume.Step {
	if w.rig.scenario.NewStep == nil {
		return w.rig.scenario.Step
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steps[p] == nil {
		w.steps[p] = w.rig.scenario.NewStep()
	}
	return w.steps[p]
}

// called notes a step call, with the generation it was claimed in.
func (w *world) called(ctx context.Context, run *resume.Run) call {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	c := callOf(run, w.calls)
	if a, ok := ctx.Value(actorKey{}).(*World); ok {
		c.Gen = a.claims[run.ID]
	}
	return c
}

func callOf(run *resume.Run, id int64) call {
	c := call{ID: id, Workflow: run.ID, Run: run.RunID, Step: run.Step, Timeouts: run.Timeouts, Inputs: inputsOf(run)}
	if run.TimedOut {
		c.TimedOut = 1
	}
	return c
}

type actorKey struct{}

// World is the world as one actor sees it: the database, the provider and the
// program that the actor is. An actor uses it in its own goroutine.
type World struct {
	*world
	process  *process
	index    int // of the process
	actor    string
	ctx      context.Context  //nolint:containedctx // an actor is one run of a function; this carries its boundaries
	claims   map[string]int64 // workflows under its lease, and the generations it was given
	inbounds int
	jumping  atomic.Bool // it moves the clock just now
}

func (w *world) as(actor string, index int, hook sqldb.Hook) (*World, error) {
	p, err := w.rig.processOf(index)
	if err != nil {
		return nil, err
	}
	a := &World{world: w, process: p, index: index, actor: actor, claims: map[string]int64{}}
	a.ctx = context.WithValue(context.Background(), actorKey{}, a)
	if hook != nil {
		a.ctx = sqldb.WithHook(a.ctx, hook)
	}
	return a, nil
}

// Crashed says whether a process ended on the way. What its actor did was then
// done again, behind everything else that was due: more outcomes are right than
// the actors' order alone would give.
func (w *World) Crashed() bool { return w.crashed }

// Context is the actor's: what it does with it stops at the boundaries.
func (w *World) Context() context.Context { return w.ctx }

// Engine is the actor's engine, for what people do.
func (w *World) Engine() *resume.Engine { return w.process.engine }

// Inbox is the actor's inbox, in front of its engine, for what people do.
// Events are brought in by [World.Push] and [World.Sweep], or a check finds
// that nobody has.
func (w *World) Inbox() *dedupe.Inbox { return w.process.inbox }

// Postgres is the actor's database, such as for [Scenario.Tables]; nil on SQLite.
func (w *World) Postgres() *pgxpool.Pool { return w.process.pool }

// SQLite is the actor's database, such as for [Scenario.Tables]; nil on Postgres.
func (w *World) SQLite() *sql.DB { return w.process.file }

// Provider is the provider, with its record.
func (w *World) Provider() *efatest.Server { return w.srv }

// Start starts a workflow in a transaction that a user began. The inbox is the
// provider's first one if it names none.
func (w *World) Start(s resume.Start) error {
	if s.Inbox == "" {
		s.Inbox = w.srv.Inbox()
	}
	return w.process.start(w.ctx, s)
}

// Signal gives a workflow an input of the user's own, in a transaction that a
// user began.
func (w *World) Signal(workflow, id string, data []byte) error {
	return w.process.signal(w.ctx, workflow, id, data)
}

// Match looks at one mail that could not be placed, as a matcher does.
func (w *World) Match() error { return w.once(resume.JobMatch) }

// Work runs one due workflow, as a worker does.
func (w *World) Work() error {
	clear(w.claims)
	defer clear(w.claims)
	return w.once(resume.JobWork)
}

// Send makes one attempt of one due send, as a sender does.
func (w *World) Send() error { return w.once(resume.JobSend) }

func (w *World) once(job resume.Job) error {
	_, err := w.process.engine.Once(w.ctx, job)
	return err
}

// Jump lets time pass for the database and the provider: the times that are
// stored move back, and the provider's clock on. Both also run by themselves.
// The program's own clock, time.Now in a step, does not jump.
func (w *World) Jump(d time.Duration) error {
	if err := boundary(w.ctx, "clock: before the jump"); err != nil {
		return err
	}
	w.jumping.Store(true)
	w.jumps.Add(1)
	err := w.rig.store.shift(w.ctx, w.index, d)
	w.jumping.Store(false)
	w.jumps.Add(1)
	if err != nil {
		return err
	}
	w.srv.Advance(d)
	w.swept.Store(false)
	now, err := w.rig.store.read(context.Background())
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.readAt = now, time.Now()
	w.moved += d
	return nil
}

// Inbound lets a message arrive at the provider. Its event is brought in by
// Push or Sweep.
func (w *World) Inbound(m efatest.Mail) efatest.Received {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inbounds++
	key := fmt.Sprintf("%s %d", w.actor, w.inbounds)
	if got, ok := w.inbound[key]; ok {
		return got
	}
	got := w.srv.Inbound(m)
	w.inbound[key] = got
	return got
}

// ErrNotSent: no mail of the workflow has left that one could reply to.
var ErrNotSent = errors.New("resumetest: no mail of the workflow has left")

// Reply lets a workflow's counterparty answer in the thread of its last mail
// that left, or is [ErrNotSent].
func (w *World) Reply(workflow, text string) (efatest.Received, error) {
	if err := boundary(w.ctx, "provider: before a message arrives"); err != nil {
		return efatest.Received{}, err
	}
	t, from, err := w.lastThread(workflow)
	if err != nil {
		return efatest.Received{}, err
	}
	return w.Inbound(efatest.Mail{From: from, Thread: t, Text: text}), nil
}

// Thread is the thread of a workflow's last mail that left, or [ErrNotSent].
func (w *World) Thread(workflow string) (string, error) {
	t, _, err := w.lastThread(workflow)
	return t, err
}

func (w *World) lastThread(workflow string) (thread, counterparty string, err error) {
	row, err := w.process.engine.Workflow(context.Background(), workflow)
	if err != nil {
		return "", "", err
	}
	sends := w.srv.Sends()
	for i := len(sends) - 1; i >= 0; i-- {
		if s := sends[i]; s.ThreadID != "" && strings.HasPrefix(s.Key, row.Run) {
			return s.ThreadID, row.Counterparty.Text(), nil
		}
	}
	return "", "", fmt.Errorf("%w: %s", ErrNotSent, workflow)
}
