package e2e_test

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

var _ resume.Mail = (*goshen.Client)(nil)

// desk is a whole agent: engine, Inbox and both doors on one SQLite database.
type desk struct {
	t       *testing.T
	srv     *goshentest.Server
	db      *sql.DB
	eng     *resume.SQLiteEngine
	sweeper *events.Sweeper
	stage   atomic.Int64 // how far the webhook is open
}

// The stages of the webhook.
const (
	shut int64 = iota
	bouncesOnly
	open
)

func newDesk(t *testing.T, step resume.Step) *desk {
	t.Helper()
	d := &desk{t: t, db: testdb.SQLite(t), srv: goshentest.NewServer(t, goshentest.Config{Speed: 200, PushTimeout: time.Minute})}
	d.stage.Store(open)
	t.Cleanup(func() { d.srv.Check(t) })
	mail := clientOf(t, d.srv)
	var err error
	d.eng, err = resume.NewSQLite(d.db, mail, step, resume.Config{
		Inboxes: map[string][]string{agent: {agent}}, Poll: 20 * time.Millisecond,
		SendRetryAfter: 200 * time.Millisecond, Hold: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	inbox, err := dedupe.NewSQLite(d.db, dedupe.Config{
		Stream: mail.Stream(), AfterCommit: d.eng.Wake, CommitTimeout: time.Minute,
	}, d.eng.Route)
	require.NoError(t, err)
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.Base64Secret(d.srv.Secret())}})
	require.NoError(t, err)
	handler, err := events.NewHandler(v, goshen.Profile, inbox, events.HandlerConfig{Timeout: time.Minute})
	require.NoError(t, err)
	d.sweeper, err = events.NewSweeper(mail.Source(), inbox, events.SweeperConfig{Start: events.FromNow})
	require.NoError(t, err)
	require.NoError(t, d.sweeper.Attach(t.Context()))
	d.srv.WebhookHandler(d.gate(handler))
	d.run()
	return d
}

// gate keeps events back by sending them away, to be pushed again.
func (d *desk) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stage, isDelivery := d.stage.Load(), strings.HasPrefix(r.Header.Get("svix-id"), "delivery:")
		if stage == shut || stage == bouncesOnly && isDelivery {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sweep sweeps until it succeeds: a slow machine may take longer than a commit
// is given.
func (d *desk) sweep() {
	d.t.Helper()
	d.eventually("swept", func() bool { _, err := d.sweeper.Sweep(context.Background()); return err == nil })
}

func (d *desk) taken() int {
	n := 0
	for _, e := range d.srv.Deliveries() {
		if e.State == goshentest.StateDelivered {
			n++
		}
	}
	return n
}

func (d *desk) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.eng.Run(ctx) }()
	d.t.Cleanup(func() {
		cancel()
		require.NoError(d.t, <-ended)
	})
}

func (d *desk) start(s resume.Start) {
	d.t.Helper()
	s.Inbox = agent
	d.eventually("started", func() bool {
		tx, err := d.db.Begin()
		if err != nil {
			return false
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := d.eng.Start(context.Background(), tx, s); err != nil {
			return false
		}
		return tx.Commit() == nil
	})
	d.eng.Wake()
}

// eventually has time for a machine that does a lot else.
func (d *desk) eventually(what string, ok func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			list, err := d.eng.Workflows(context.Background(), "", "", 0)
			d.t.Fatalf("never: %s: %+v %v %+v", what, list, err, d.srv.Sends())
		}
	}
}

func (d *desk) status(id string) resume.Status {
	w, err := d.eng.Workflow(context.Background(), id)
	require.NoError(d.t, err)
	return w.Status
}

// acknowledge answers the first reply in its thread and is done.
func acknowledge(_ context.Context, run *resume.Run) (resume.Next, error) {
	replies := run.Replies()
	if len(replies) == 0 {
		return resume.Wait(0), nil
	}
	return resume.Send(client.Outgoing{
		To: []string{run.Counterparty}, Text: "ack: " + replies[0].Body.Text.Text(), ReplyTo: replies[0].Message.ID,
	}).Done(), nil
}

// A question goes out, its answer comes by both doors, and is acknowledged
// once in the same thread.
func TestResumeAcknowledgesOnce(t *testing.T) {
	t.Parallel()
	for name, mail := range map[string]func(question goshentest.Send) goshentest.Mail{
		"in the thread": func(q goshentest.Send) goshentest.Mail {
			return goshentest.Mail{From: "supplier@example.com", InReplyTo: q.MessageID, Text: "12 EUR"}
		},
		"in a new thread": func(goshentest.Send) goshentest.Mail {
			return goshentest.Mail{From: "Supplier@Example.com", Text: "12 EUR"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, acknowledge)
			d.start(resume.Start{ID: "w1", Counterparty: "supplier@example.com", First: resume.Send(hello)})
			d.eventually("asked", func() bool { return len(d.srv.Sends()) == 1 })
			answer := d.srv.Inbound(mail(d.srv.Sends()[0]))
			d.sweep()
			d.eventually("done", func() bool { return d.status("w1") == resume.StatusDone })
			d.sweep()

			sends := d.srv.Sends()
			require.Len(t, sends, 2)
			assert.Equal(t, "ack: 12 EUR", sends[1].Text)
			assert.Equal(t, answer.MessageID, sends[1].InReplyTo)
			assert.Equal(t, answer.ThreadID, sends[1].ThreadID)
			assert.Equal(t, []string{"received", "handled"}, d.srv.Labels(agent, answer.MessageID))
		})
	}
}

// The answer to a send is lost; the same key finds it again.
func TestResumeSendsOnceThoughAnswersAreLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t, acknowledge)
	d.srv.Fault(goshentest.Fault{Op: goshentest.OpSend, Drop: goshentest.DropAnswer, When: goshentest.When{Times: 2}})
	d.start(resume.Start{ID: "w1", Counterparty: "supplier@example.com", First: resume.Send(hello)})
	d.eventually("waiting", func() bool { return d.status("w1") == resume.StatusWaiting })
	require.Len(t, d.srv.Sends(), 1)
	assert.Len(t, d.srv.Messages(), 1)
}

// One bounce that is told by two events is one input. (A run may be repeated
// with the same input, so what counts is its event.)
func TestResumeHearsOfABounceOnce(t *testing.T) {
	t.Parallel()
	inputs := make(chan resume.Input, 64)
	d := newDesk(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		for _, in := range run.Inputs {
			inputs <- in
		}
		return resume.Wait(0), nil
	})
	d.stage.Store(shut)
	d.srv.BounceAt(func(string) bool { return true })
	d.start(resume.Start{ID: "w1", Counterparty: "supplier@example.com", First: resume.Send(hello)})
	d.eventually("asked", func() bool { return d.status("w1") == resume.StatusWaiting })
	d.stage.Store(bouncesOnly)
	d.eventually("email.bounced taken", func() bool { return d.taken() == 1 })
	d.stage.Store(open)
	d.eventually("the snapshot taken", func() bool { return d.taken() == 2 })
	d.srv.Inbound(goshentest.Mail{From: "supplier@example.com", InReplyTo: d.srv.Sends()[0].MessageID, Text: "hello"})
	bounces := map[string]client.Delivery{}
	for in := range inputs {
		if in.Kind == resume.InputReply {
			break
		}
		assert.Equal(t, resume.InputBounce, in.Kind)
		bounces[in.EventID] = in.Delivery
	}
	assert.Len(t, bounces, 1)
	for _, state := range bounces {
		assert.Equal(t, client.DeliveryBounced, state)
	}
}
