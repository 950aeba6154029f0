package resumetest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// Observed is an engine of a test of your own: on one of the two databases,
// which has the engine's tables, and with the provider that it speaks to.
type Observed struct {
	Config   resume.Config
	Provider *efatest.Server
	Pool     *pgxpool.Pool
	DB       *sql.DB

	// Foreign are the keys of what the test itself sends by the provider.
	Foreign []string
}

// Observer checks [Invariants] where no explorer acts: those that are to hold
// after every commit. It is safe for concurrent use.
type Observer struct {
	of   Observed
	d    dialect
	all  string
	lite *sql.Stmt // all, on SQLite

	mu       sync.Mutex
	before   *tables
	calls    int64
	requests int
	running  int
	behind   time.Duration
	zoneless []string
	fed      map[string]events.Event
	taken    map[string]bool
}

// Observe begins to observe an engine. Give the engine Observer.Step for its
// step. It makes two tables of its own beside the engine's.
func Observe(tb testing.TB, of Observed) *Observer {
	tb.Helper()
	o := &Observer{of: of, before: &tables{}, fed: map[string]events.Event{}, taken: map[string]bool{}}
	o.d = dialect{prefix: cmp.Or(of.Config.Schema, "replywake") + "."}
	if of.DB != nil {
		o.d = lite
	}
	o.d.engine = cmp.Or(of.Config.Name, "default")
	o.all = o.d.selectAll()
	if err := o.prepare(context.Background()); err != nil {
		tb.Fatalf("resumetest: observe: %v", err)
	}
	return o
}

func (o *Observer) prepare(ctx context.Context) (err error) {
	if o.of.DB != nil {
		if _, err = o.of.DB.ExecContext(ctx, o.d.create()); err == nil {
			o.lite, err = o.of.DB.PrepareContext(ctx, o.all)
		}
		return err
	}
	if _, err = o.of.Pool.Exec(ctx, o.d.create()); err != nil {
		return err
	}
	o.zoneless, err = zoneless(ctx, o.of.Pool, strings.TrimSuffix(o.d.prefix, "."))
	return err
}

// Step is a step that has what it is given written by the transaction that
// commits its result.
func (o *Observer) Step(step resume.Step) resume.Step {
	return func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		o.mu.Lock()
		o.calls++
		c := callOf(run, o.calls)
		o.mu.Unlock()
		c.Engine = o.d.engine
		next, err := step(ctx, run)
		if err == nil {
			o.join(run, c)
		}
		return next, err
	}
}

func (o *Observer) join(run *resume.Run, c call) {
	if o.of.DB != nil {
		run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, o.d.insertCall(), c.values()...)
			return err
		})
		return
	}
	run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, o.d.insertCall(), append([]any{unprepared}, c.values()...)...)
		return err
	})
}

// unprepared: an engine behind a pooler must not leave prepared statements, and
// so must who observes it.
const unprepared = pgx.QueryExecModeExec

// Acknowledged notes that a door took events.
func (o *Observer) Acknowledged(evs ...events.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ev := range evs {
		o.fed[ev.ID], o.taken[ev.ID] = ev, true
	}
}

// Running says that the engine acts by itself until ended is called: several
// commits may lie between two checks.
func (o *Observer) Running() (ended func()) {
	add := func(n int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.running += n
	}
	add(1)
	return func() { add(-1) }
}

// CheckMany is Check where more than one commit has been made since the last.
func (o *Observer) CheckMany() error {
	defer o.Running()()
	return o.Check()
}

// Check is nil if every promise holds, or if the database does not answer. Call
// it after each act of the test's.
func (o *Observer) Check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := &facts{fed: o.fed, taken: maps.Clone(o.taken), config: o.of.Config, record: o.sends(), loose: o.running > 0}
	now, err := o.read()
	if err != nil || now == nil {
		return err
	}
	o.provider(f)
	f.before, f.now = o.before, now
	if moved := f.behind - o.behind; moved.Abs() > time.Second { // the clock, and every stored time with it
		f.before = now
	}
	o.before, o.behind = now, f.behind
	if broken, err := f.check(false); err != nil {
		return fmt.Errorf("broke %s\n  %w", broken, err)
	}
	return nil
}

func (o *Observer) provider(f *facts) {
	srv := o.of.Provider
	requests := srv.Requests()
	f.later, f.requests, f.breaches, f.messages, f.events = o.sends(), requests[o.requests:], srv.Violations(), srv.Messages(""), srv.Events()
	f.behind = time.Until(srv.Now())
	o.requests = len(requests)
}

func (o *Observer) sends() []efatest.Send {
	return slices.DeleteFunc(o.of.Provider.Sends(), func(s efatest.Send) bool { return slices.Contains(o.of.Foreign, s.Key) })
}

// read is nil if the database is away.
func (o *Observer) read() (*tables, error) {
	for {
		t, err := o.readOnce(context.Background())
		switch {
		case err == nil:
			t.zoneless = o.zoneless
			return t, nil
		case sqldb.IsUnavailable(err):
			return nil, nil
		case !strings.Contains(err.Error(), "locked"): // SQLite's one writer is at it
			return nil, err
		}
	}
}

func (o *Observer) readOnce(ctx context.Context) (*tables, error) {
	if o.of.DB != nil {
		return decode(o.lite.QueryRowContext(ctx).Scan)
	}
	return decode(o.of.Pool.QueryRow(ctx, o.all, unprepared).Scan)
}
