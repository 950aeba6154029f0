package resume_test

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

const supplier = "supplier@example.com"

// rig is an engine on one store, with the provider it speaks to. Unless run is
// called, nothing happens but what the test asks for.
type rig struct {
	t     *testing.T
	store string
	srv   *efatest.Server
	mail  *efa.Client
	wrap  func(resume.Mail) resume.Mail // what the engine speaks to instead
	eng   *resume.Engine
	cfg   resume.Config

	pool *pgxpool.Pool
	pg   *resume.PostgresEngine
	db   *sql.DB
	lite *resume.SQLiteEngine

	inbox *dedupe.Inbox

	watch  *resumetest.Observer // nil where unwatched
	acting atomic.Int32         // engines that act by themselves

	unchecked bool // within an act of several

	mu    sync.Mutex
	step  resume.Step
	calls []resume.Run // every step call, in order
	fed   events.Cursor
}

type opener func(step resume.Step, cfg resume.Config, provider ...efatest.Config) *rig

// onBoth runs a test on both stores, in parallel.
func onBoth(t *testing.T, fn func(t *testing.T, open opener)) {
	t.Helper()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			fn(t, func(step resume.Step, cfg resume.Config, provider ...efatest.Config) *rig {
				return newRig(t, store, step, cfg, provider...)
			})
		})
	}
}

// storeOf is the store that a test of onBoth runs on.
func storeOf(t *testing.T) string {
	t.Helper()
	for _, part := range strings.Split(t.Name(), "/") {
		if part == "sqlite" || part == "postgres" {
			return part
		}
	}
	t.Fatal("not inside onBoth")
	return ""
}

func newRig(t *testing.T, store string, step resume.Step, cfg resume.Config, provider ...efatest.Config) *rig {
	t.Helper()
	r := bareRig(t, store, step, provider...)
	r.open(cfg)
	return r
}

// bareRig is a provider without an engine.
func bareRig(t *testing.T, store string, step resume.Step, provider ...efatest.Config) *rig {
	t.Helper()
	r := &rig{t: t, store: store, step: step, srv: efatest.NewServer(t, append(provider, efatest.Config{})[0])}
	var err error
	r.mail, err = efa.New(efa.Config{BaseURL: r.srv.URL(), Project: r.srv.Project(), Key: r.srv.Key(), HTTPClient: r.srv.Client()})
	require.NoError(t, err)
	return r
}

// open makes the rig's engine and its inbox, on a fresh store unless it has one.
func (r *rig) open(cfg resume.Config) {
	r.t.Helper()
	switch {
	case r.pool != nil || r.db != nil:
	case r.store == "postgres":
		db := testdb.Postgres(r.t)
		r.pool, cfg.Schema = db.Pool, db.Schema
	default:
		r.db = r.migrated()
	}
	var mail resume.Mail = r.mail
	if r.wrap != nil {
		mail = r.wrap(mail)
	}
	r.pg, r.lite, r.eng, r.cfg = r.engine(mail, cfg)
	if r.pg != nil {
		require.NoError(r.t, r.pg.Migrate(r.t.Context()))
	}
	r.inbox = r.door(r.mail, r.pg, r.lite)
	r.observe()
}

// engine makes an engine on the rig's store.
func (r *rig) engine(mail resume.Mail, cfg resume.Config) (pg *resume.PostgresEngine, lite *resume.SQLiteEngine, eng *resume.Engine, _ resume.Config) {
	r.t.Helper()
	if cfg.Inboxes == nil {
		cfg.Inboxes = map[string][]string{r.srv.Inbox(): {r.srv.Address(r.srv.Inbox())}}
	}
	if cfg.Poll == 0 {
		cfg.Poll = 20 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(r.t.Output(), nil))
	}
	var err error
	if r.store == "postgres" {
		pg, err = resume.NewPostgres(r.pool, mail, r.call, cfg)
		require.NoError(r.t, err)
		return pg, nil, pg.Engine, cfg
	}
	lite, err = resume.NewSQLite(r.db, mail, r.call, cfg)
	require.NoError(r.t, err)
	return nil, lite, lite.Engine, cfg
}

// door makes the inbox of an engine's stream.
func (r *rig) door(mail resume.Mail, pg *resume.PostgresEngine, lite *resume.SQLiteEngine) *dedupe.Inbox {
	r.t.Helper()
	cfg := dedupe.Config{Stream: mail.Stream(), Schema: r.cfg.Schema, Pooler: r.cfg.Pooler}
	var in *dedupe.Inbox
	var err error
	if pg != nil {
		cfg.AfterCommit = pg.Wake
		in, err = dedupe.NewPostgres(r.pool, cfg, pg.Route)
	} else {
		cfg.AfterCommit = lite.Wake
		in, err = dedupe.NewSQLite(r.db, cfg, lite.Route)
	}
	require.NoError(r.t, err)
	return in
}

// call is the step of every engine of the rig: what do says.
func (r *rig) call(ctx context.Context, run *resume.Run) (resume.Next, error) {
	r.mu.Lock()
	r.calls = append(r.calls, *run)
	step := r.step
	r.mu.Unlock()
	if r.watch != nil {
		step = r.watch.Step(step)
	}
	return step(ctx, run)
}

// do changes what the step does from now on.
func (r *rig) do(step resume.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
}

// wrapStep lets something happen while the next run's step works.
func (r *rig) wrapStep(meanwhile func()) {
	r.mu.Lock()
	step := r.step
	r.mu.Unlock()
	r.do(func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		r.do(step)
		meanwhile()
		return step(ctx, run)
	})
}

// runs are the step calls so far.
func (r *rig) runs() []resume.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]resume.Run{}, r.calls...)
}

// last is the latest step call; there must be n of them.
func (r *rig) last(n int) resume.Run {
	r.t.Helper()
	runs := r.runs()
	if len(runs) != n {
		r.dump()
		require.Len(r.t, runs, n, "step calls")
	}
	return runs[n-1]
}

// run keeps the engine going until the test ends.
func (r *rig) run() (stop func()) { return r.runEngine(r.eng) }

func (r *rig) runEngine(e *resume.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ended := r.acts()
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-done)
		ended()
	})
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) start(s resume.Start) {
	r.t.Helper()
	require.NoError(r.t, r.tryStart(s))
}

func (r *rig) tryStart(s resume.Start) (err error) {
	if s.Inbox == "" {
		s.Inbox = r.srv.Inbox()
	}
	r.check() // what people did before
	defer r.check()
	if r.pg != nil {
		_, err = r.pg.Start(context.Background(), nil, s)
	} else {
		_, err = r.lite.Start(context.Background(), nil, s)
	}
	return err
}

func (r *rig) signal(workflow, id, data string) error {
	r.check() // what people did before
	defer r.check()
	if r.pg != nil {
		return r.pg.Signal(context.Background(), nil, workflow, id, []byte(data))
	}
	return r.lite.Signal(context.Background(), nil, workflow, id, []byte(data))
}

// ask starts a workflow with a question to an address and lets it be sent.
func (r *rig) ask(id, to string) efatest.Send {
	r.t.Helper()
	before := len(r.srv.Sends())
	r.start(resume.Start{ID: id, Counterparty: to, First: question(to)})
	r.rest()
	sends := r.srv.Sends()
	require.Len(r.t, sends, before+1, "the question left")
	return sends[before]
}

// feed hands in the provider's events that were not handed in yet.
func (r *rig) feed() (fed bool) {
	r.t.Helper()
	page, err := r.mail.Source().Page(context.Background(), r.fed)
	require.NoError(r.t, err)
	if len(page.Events) == 0 {
		return false
	}
	r.route(page.Events...)
	r.fed = page.Events[len(page.Events)-1].Sequence
	return true
}

// tryFeed is feed where the database may be away.
func (r *rig) tryFeed() {
	page, err := r.mail.Source().Page(context.Background(), r.fed)
	if err != nil || len(page.Events) == 0 {
		return
	}
	if _, err := r.inbox.Take(context.Background(), events.Batch{Events: page.Events}); err == nil {
		r.acknowledged(page.Events...)
		r.fed = page.Events[len(page.Events)-1].Sequence
	}
}

func (r *rig) route(evs ...events.Event) {
	r.t.Helper()
	_, err := r.inbox.Take(context.Background(), events.Batch{Events: evs})
	require.NoError(r.t, err)
	r.acknowledged(evs...)
	r.check()
}

// skip leaves the provider's events so far out, as history.
func (r *rig) skip() {
	r.fed = events.Cursor(r.srv.Head())
}

// once does one piece of a job.
func (r *rig) once(job resume.Job) bool {
	r.t.Helper()
	did, err := r.eng.Once(context.Background(), job)
	require.NoError(r.t, err)
	if did {
		r.check()
	}
	return did
}

// rest feeds and works until nothing is due.
func (r *rig) rest() {
	r.t.Helper()
	defer r.whole()()
	for range 200 {
		busy := r.feed()
		for _, job := range []resume.Job{resume.JobMatch, resume.JobWork, resume.JobSend} {
			if r.due(job) {
				busy = r.once(job) || busy
			}
		}
		if !busy {
			return
		}
	}
	r.dump()
	r.t.Fatal("it never comes to rest")
}

// due says whether a job has anything to claim. It only spares the time that
// SQLite takes, under the race detector, to find that it has not.
func (r *rig) due(job resume.Job) bool {
	r.t.Helper()
	now := map[string]string{"postgres": "now()", "sqlite": "cast(unixepoch('subsec') * 1000000 as integer)"}[r.store]
	from := map[resume.Job]string{resume.JobWork: "workflows where ", resume.JobSend: "sends where ", resume.JobMatch: "mail where place = 'unplaced' and "}
	return r.count("select count(*) from {s}"+from[job]+"due <= "+now) > 0
}

// until feeds and waits until ok.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			r.dump()
			r.t.Fatalf("never came: %s", what)
		}
		r.feed()
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *rig) workflow(id string) resume.Workflow {
	r.t.Helper()
	r.look()
	w, err := r.eng.Workflow(context.Background(), id)
	require.NoError(r.t, err)
	return w
}

func (r *rig) status(id string) resume.Status {
	r.t.Helper()
	return r.workflow(id).Status
}

func (r *rig) queue() []resume.Item {
	r.t.Helper()
	r.look()
	items, err := r.eng.Queue(context.Background(), "", 0)
	require.NoError(r.t, err)
	return items
}

// queued is the queue's one item.
func (r *rig) queued() resume.Item {
	r.t.Helper()
	items := r.queue()
	if len(items) != 1 {
		r.dump()
		require.Len(r.t, items, 1, "the queue")
	}
	return items[0]
}

func (r *rig) dump() {
	ws, err := r.eng.Workflows(context.Background(), "", "", 0)
	r.t.Log(err)
	for _, w := range ws {
		r.t.Logf("%+v", w)
		tl, _ := r.eng.Timeline(context.Background(), w.ID)
		for _, m := range tl {
			r.t.Logf("   %s %-12s step %d %s", m.At.Format("05.000"), m.What, m.Step, m.Detail)
		}
	}
	items, _ := r.eng.Queue(context.Background(), "", 0)
	r.t.Logf("queue: %+v", items)
}

// messages are the IDs of a run's replies, in the order the step sees them.
func messages(run resume.Run) (ids []string) {
	for _, in := range run.Replies() {
		ids = append(ids, in.Message.ID)
	}
	return ids
}

func quote(to string) client.Outgoing {
	return client.Outgoing{To: []string{to}, Subject: "Quote request", Text: "please quote"}
}

func question(to string) resume.Next { return resume.Send(quote(to)) }

// answer answers the last reply of a run in its thread.
func answer(run *resume.Run, text string) resume.Next {
	replies := run.Replies()
	return resume.Send(client.Outgoing{
		To: []string{run.Counterparty}, Subject: "Re", Text: text, ReplyTo: replies[len(replies)-1].Message.ID,
	})
}

// listens waits again, whatever comes.
func listens(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
