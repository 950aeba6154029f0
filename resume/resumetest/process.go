package resumetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// rig is what stays the same over all runs of a scenario on one store: the
// processes are kept as long as they remember nothing that matters, the world
// around them is new.
type rig struct {
	store     store
	scenario  *Scenario
	config    resume.Config
	stream    events.Stream
	processes []*process
	world     atomic.Pointer[world] // of the present run
	polls     map[string]string     // see facts
}

func (r *rig) processOf(i int) (*process, error) {
	for len(r.processes) <= i {
		r.processes = append(r.processes, nil)
	}
	if r.processes[i] != nil {
		return r.processes[i], nil
	}
	p, err := r.store.process(i, r)
	if err != nil {
		return nil, err
	}
	// What an engine and an inbox do only once is no part of any run.
	if err := p.engine.Migrate(context.Background()); err != nil {
		return nil, err
	}
	if _, err := p.inbox.Position(context.Background()); err != nil {
		return nil, err
	}
	if r.polls == nil {
		if r.polls, err = r.explain(p); err != nil {
			return nil, err
		}
	}
	r.processes[i] = p
	return p, nil
}

// mostReads is how many reads a process may have made before a run begins: so
// few that no allowance for a minute is nearly used up.
const mostReads = 50

// renew ends the processes whose memory would tell in the next run. Making all
// anew for each run would take a fifth of its time.
func (r *rig) renew() {
	for i, p := range r.processes {
		if p != nil && (p.mail.reads.Load() > mostReads || p.mail.failed.Load()) {
			r.processes[i] = nil
		}
	}
}

// process is a program with an engine and an inbox.
type process struct {
	rig     *rig
	mail    *boundaryMail
	engine  *resume.Engine
	pg      *resume.PostgresEngine
	lite    *resume.SQLiteEngine
	inbox   *dedupe.Inbox
	pool    *pgxpool.Pool // nil on SQLite
	file    *sql.DB       // nil on Postgres
	db      *sqldb.DB
	dialect dialect
	join    func(run *resume.Run, insert func(execer) error)
}

// Explored transactions stand still while others run: no timeout of the inbox
// may end them.
const patient = 2 * time.Minute

func inboxConfig(r *rig, schema string) dedupe.Config {
	return dedupe.Config{Stream: r.stream, Schema: schema, CommitTimeout: patient, LockTimeout: patient}
}

func newLiteInbox(db *sql.DB, r *rig, eng *resume.SQLiteEngine) (*dedupe.Inbox, error) {
	return dedupe.NewSQLite(db, inboxConfig(r, ""), eng.Route)
}

func newPostgresInbox(pool *pgxpool.Pool, schema string, r *rig, eng *resume.PostgresEngine) (*dedupe.Inbox, error) {
	return dedupe.NewPostgres(pool, inboxConfig(r, schema), eng.Route)
}

// start starts a workflow in a transaction of the user's, with something that
// the user writes.
func (p *process) start(ctx context.Context, s resume.Start) error {
	s.ID = cmp.Or(s.ID, rand.Text())
	return p.joined(ctx, "start", s.ID, "", func(tx sqldb.Tx) (err error) {
		if p.pg != nil {
			_, err = p.pg.Start(ctx, tx.Native().(pgx.Tx), s)
		} else {
			_, err = p.lite.Start(ctx, tx.Native().(*sql.Tx), s)
		}
		return err
	})
}

func (p *process) signal(ctx context.Context, workflow, id string, data []byte) error {
	return p.joined(ctx, "signal", workflow, id, func(tx sqldb.Tx) error {
		if p.pg != nil {
			return p.pg.Signal(ctx, tx.Native().(pgx.Tx), workflow, id, data)
		}
		return p.lite.Signal(ctx, tx.Native().(*sql.Tx), workflow, id, data)
	})
}

func (p *process) joined(ctx context.Context, what, workflow, name string, fn func(sqldb.Tx) error) error {
	return p.db.Tx(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, p.dialect.insertJoined(), what, workflow, name); err != nil {
			return err
		}
		return fn(tx)
	})
}

// step calls the user's step between two boundaries, and has what it was given
// written by the transaction that commits its result.
func (p *process) step(ctx context.Context, run *resume.Run) (resume.Next, error) {
	if err := boundary(ctx, "step: before"); err != nil {
		return resume.Next{}, err
	}
	w := p.rig.world.Load()
	c := w.called(ctx, run)
	next, err := w.stepOf(p)(ctx, run)
	if err != nil {
		return next, err
	}
	if err := boundary(ctx, "step: after"); err != nil {
		return resume.Next{}, err
	}
	p.join(run, func(exec execer) error {
		return exec(ctx, p.dialect.insertCall(), c.values()...)
	})
	return next, nil
}

// boundary is a point of ours beside those of the database.
func boundary(ctx context.Context, point string) error {
	if hook := sqldb.HookOf(ctx); hook != nil {
		return hook(point)
	}
	return nil
}

// errCrash is what everything returns in a process that has ended.
var errCrash = errors.New("resumetest: the process has ended")

// inputsOf are the events of the inputs that were shown with their content.
func inputsOf(run *resume.Run) string {
	var b strings.Builder
	b.WriteByte(' ')
	for _, in := range run.Inputs {
		if in.Kind != resume.InputReply || in.Message.ID != "" && in.Body.Available {
			b.WriteString(in.EventID + " ")
		}
	}
	return b.String()
}
