package resume_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
)

const inbox = "ibx_main"

// rig is an engine on one store, with the provider it speaks to.
type rig struct {
	t    *testing.T
	srv  *efatest.Server
	mail *efa.Client
	eng  *resume.Engine
	cfg  resume.Config

	pool *pgxpool.Pool
	pg   *resume.PostgresEngine
	db   *sql.DB
	lite *resume.SQLiteEngine

	inbox *dedupe.Inbox

	mu    sync.Mutex
	calls []resume.Run // every step call, in order
	fed   int          // provider events routed so far
}

type stepFunc = resume.Step

// onBoth runs a test on both stores.
func onBoth(t *testing.T, fn func(t *testing.T, open func(step stepFunc, cfg resume.Config) *rig)) {
	t.Helper()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			fn(t, func(step stepFunc, cfg resume.Config) *rig { return newRig(t, store, step, cfg) })
		})
	}
}

func newRig(t *testing.T, store string, step stepFunc, cfg resume.Config) *rig {
	t.Helper()
	r := &rig{t: t, srv: efatest.NewServer(t, efatest.Config{})}
	var err error
	r.mail, err = efa.New(efa.Config{BaseURL: r.srv.URL(), Project: r.srv.Project(), Key: r.srv.Key(), HTTPClient: r.srv.Client()})
	require.NoError(t, err)
	cfg.Inboxes = map[string][]string{r.srv.Inbox(): {r.srv.Address(r.srv.Inbox())}}
	if cfg.Poll == 0 {
		cfg.Poll = 20 * time.Millisecond
	}
	if cfg.SendRetryAfter == 0 {
		cfg.SendRetryAfter = 200 * time.Millisecond
	}
	if cfg.Hold == 0 {
		cfg.Hold = 50 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	recorded := func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		r.mu.Lock()
		r.calls = append(r.calls, *run)
		r.mu.Unlock()
		return step(ctx, run)
	}
	if store == "postgres" {
		db := testdb.Postgres(t)
		cfg.Schema = db.Schema
		r.pool = db.Pool
		r.pg, err = resume.NewPostgres(db.Pool, r.mail, recorded, cfg)
		require.NoError(t, err)
		require.NoError(t, r.pg.Migrate(t.Context()))
		r.eng = r.pg.Engine
		r.inbox, err = dedupe.NewPostgres(db.Pool, dedupe.Config{Stream: r.mail.Stream(), Schema: db.Schema, AfterCommit: r.eng.Wake}, r.pg.Route)
	} else {
		r.db = testdb.SQLite(t)
		r.lite, err = resume.NewSQLite(r.db, r.mail, recorded, cfg)
		require.NoError(t, err)
		r.eng = r.lite.Engine
		r.inbox, err = dedupe.NewSQLite(r.db, dedupe.Config{Stream: r.mail.Stream(), AfterCommit: r.eng.Wake}, r.lite.Route)
	}
	require.NoError(t, err)
	r.cfg = cfg
	return r
}

// run keeps the engine going until the test ends.
func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.eng.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(r.t, <-done)
		})
	}
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) start(s resume.Start) {
	r.t.Helper()
	require.NoError(r.t, r.tryStart(s))
}

func (r *rig) tryStart(s resume.Start) (err error) {
	s.Inbox = r.srv.Inbox()
	if r.pg != nil {
		_, err = r.pg.Start(context.Background(), nil, s)
	} else {
		_, err = r.lite.Start(context.Background(), nil, s)
	}
	return err
}

// feed hands in the provider's events that were not handed in yet.
func (r *rig) feed() {
	r.t.Helper()
	page, err := r.mail.Source().Page(context.Background(), events.Cursor(r.fed))
	require.NoError(r.t, err)
	if len(page.Events) > 0 {
		r.fed = int(page.Events[len(page.Events)-1].Sequence)
		r.route(page.Events...)
	}
}

func (r *rig) route(evs ...events.Event) {
	r.t.Helper()
	_, err := r.inbox.Take(context.Background(), events.Batch{Events: evs})
	require.NoError(r.t, err)
}

// until feeds and waits until ok.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.dump()
			r.t.Fatalf("never came: %s", what)
		}
		r.feed()
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *rig) status(id string) resume.Status {
	w, err := r.eng.Workflow(context.Background(), id)
	require.NoError(r.t, err)
	return w.Status
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

// acks acknowledges every reply in one send and is done after n of them.
func acks(n int) stepFunc {
	type acked struct{ N int }
	return func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		var s acked
		if err := run.Unmarshal(&s); err != nil {
			return resume.Next{}, err
		}
		var ids []string
		for _, in := range run.Replies() {
			ids = append(ids, in.Message.ID)
		}
		if len(ids) == 0 {
			return resume.Wait(0), nil
		}
		s.N += len(ids)
		next := resume.Send(client.Outgoing{
			To: []string{run.Counterparty}, Subject: "ack", Text: "ack: " + strings.Join(ids, ","), ReplyTo: ids[len(ids)-1],
		}).Save(s)
		if s.N >= n {
			next = next.Done()
		}
		return next, nil
	}
}

func question(to string) resume.Next {
	return resume.Send(client.Outgoing{To: []string{to}, Subject: "Quote request", Text: "please quote"})
}

func TestReplyWakesWorkflow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(stepFunc, resume.Config) *rig) {
		r := open(acks(2), resume.Config{})
		r.run()
		r.start(resume.Start{ID: "w1", Counterparty: "Supplier@Example.com", First: question("supplier@example.com")})
		r.until("sent", func() bool { return len(r.srv.Sends()) == 1 })
		thread := r.srv.Sends()[0].ThreadID
		in := r.srv.Inbound(efatest.Mail{From: "supplier@example.com", Thread: thread, Text: "100 EUR"})
		r.until("acknowledged", func() bool { return len(r.srv.Sends()) == 2 })
		in2 := r.srv.Inbound(efatest.Mail{From: "supplier@example.com", Text: "90 EUR, on a new thread"})
		r.until("done", func() bool { return r.status("w1") == resume.StatusDone })
		require.Len(t, r.srv.Sends(), 3)
		seen, err := r.eng.Seen(t.Context(), "w1")
		require.NoError(t, err)
		require.Equal(t, []string{in.MessageID, in2.MessageID}, seen)
		r.srv.Check(t)
		late := r.srv.Inbound(efatest.Mail{From: "supplier@example.com", Thread: thread, Text: "hello?"})
		r.until("late reply queued", func() bool {
			items, err := r.eng.Queue(context.Background(), "", 0)
			require.NoError(t, err)
			return len(items) == 1 && items[0].Message == late.MessageID && items[0].Reason == resume.ReasonLateReply
		})
	})
}

func TestManyWorkflows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(stepFunc, resume.Config) *rig) {
		r := open(acks(3), resume.Config{})
		stop := r.run()
		const n = 6
		for i := range n {
			r.start(resume.Start{ID: fmt.Sprintf("w%02d", i), Counterparty: fmt.Sprintf("c%d@example.com", i), First: question(fmt.Sprintf("c%d@example.com", i))})
		}
		replied := map[string]bool{}
		r.until("all done", func() bool {
			for _, s := range r.srv.Sends() {
				if !replied[s.MessageID] {
					replied[s.MessageID] = true
					r.srv.Inbound(efatest.Mail{From: s.To[0], Thread: s.ThreadID, Text: "first"})
					if len(replied)%2 == 0 {
						r.srv.Inbound(efatest.Mail{From: s.To[0], Text: "new thread"})
					}
				}
			}
			ws, err := r.eng.Workflows(context.Background(), resume.StatusDone, "", 0)
			require.NoError(t, err)
			return len(ws) == n
		})
		stop()
		r.srv.Check(t)
		acked := map[string]int{}
		for _, s := range r.srv.Sends() {
			if list, ok := strings.CutPrefix(s.Text, "ack: "); ok {
				for id := range strings.SplitSeq(list, ",") {
					acked[id]++
				}
			}
		}
		for id, times := range acked {
			require.Equal(t, 1, times, id)
		}
	})
}
