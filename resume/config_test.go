package resume_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

func TestConfigReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	bad := resume.Config{
		Inboxes: map[string][]string{"": {"a@example.com"}, "ibx_1": {}, "ibx_2": {"secret nonsense"}},
		Workers: -1, Senders: -1, Attempts: -1, MaxSendsPerHour: -1,
		Lease: -1, Poll: -1, Hold: -1, Drain: -1, SendRetryAfter: -1, SendTimeout: -1,
		UnreadableFor: -1, UnreadableUntil: -1, Retain: -1, ReplayWindow: 31 * day,
	}
	_, pgErr := resume.NewPostgres(nil, nil, nil, bad)
	_, liteErr := resume.NewSQLite(nil, nil, nil, bad)
	_, err := resume.NewSQLite(testdb.SQLite(t), nil, nil, bad)
	for _, err := range []error{pgErr, liteErr, err} {
		for _, word := range []string{
			"empty inbox ID", "ibx_1 has no address", "ibx_2, address 1", "Workers", "Senders", "Attempts", "MaxSendsPerHour", "Lease", "Poll",
			"Hold", "Drain", "SendRetryAfter", "SendTimeout", "UnreadableFor", "UnreadableUntil", "Retain", "ReplayWindow",
		} {
			require.ErrorContains(t, err, word)
		}
		require.NotContains(t, err.Error(), "nonsense")
	}
	require.ErrorContains(t, pgErr, "no pool")
	require.ErrorContains(t, liteErr, "no database")
	require.ErrorContains(t, err, "no Mail")
	require.ErrorContains(t, err, "no Step")
	_, err = resume.NewSQLite(testdb.SQLite(t), nil, nil, resume.Config{})
	require.ErrorContains(t, err, "Inboxes is empty")
}

func TestStartReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		err := r.tryStart(resume.Start{
			ID: "a b", Inbox: "ibx_none", Counterparty: "nobody at all", State: func() {}, First: question(supplier).Wait(-1),
		})
		require.ErrorIs(t, err, resume.Err)
		require.ErrorIs(t, err, resume.ErrInbox)
		for _, word := range []string{"ID", "Counterparty", "State", "First"} {
			require.ErrorContains(t, err, word)
		}
		require.NotContains(t, err.Error(), "nobody")
		for what, s := range map[string]resume.Start{
			"long ID":     {ID: strings.Repeat("x", 201), Counterparty: supplier},
			"own address": {ID: "w1", Counterparty: strings.ToUpper(r.srv.Address(r.srv.Inbox()))},
			"saves":       {ID: "w1", Counterparty: supplier, First: resume.Wait(0).Save(1)},
			"no mail":     {ID: "w1", Counterparty: supplier, First: question("nobody")},
		} {
			require.ErrorIs(t, r.tryStart(s), resume.Err, what)
		}
		ws, err := r.eng.Workflows(t.Context(), "", "", 0)
		require.NoError(t, err)
		require.Empty(t, ws)
	})
}

func TestStartWithoutAnIDMakesOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.start(resume.Start{Counterparty: supplier, Kind: "quote"})
		r.start(resume.Start{Counterparty: supplier, Kind: "quote"})
		r.rest()
		runs := r.runs()
		require.Len(t, runs, 2)
		require.NotEqual(t, runs[0].ID, runs[1].ID)
		require.NotEmpty(t, runs[0].ID)
		require.Equal(t, "quote", runs[0].Kind)
		require.Empty(t, runs[0].Inputs)
		require.Zero(t, runs[0].Step)
		require.False(t, runs[0].TimedOut)
	})
}

func TestReadyTellsAnOldSchema(t *testing.T) {
	t.Parallel()
	db := testdb.Postgres(t)
	r := bareRig(t, "postgres", listens)
	r.pool = db.Pool
	_, _, e, _ := r.engine(r.mail, resume.Config{Schema: db.Schema})
	require.ErrorContains(t, e.Ready(t.Context()), "Migrate")
	require.NoError(t, e.Migrate(t.Context()))
	require.NoError(t, e.Migrate(t.Context()), "again is fine")
	require.NoError(t, e.Ready(t.Context()))
	script, err := resume.SQL("mine")
	require.NoError(t, err)
	require.Contains(t, script, `"mine".workflows`)
}

func TestUnknownJob(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		_, err := r.eng.Once(t.Context(), "dance")
		require.Error(t, err)
	})
}

// B32: what the step gave is what leaves, to the byte, however often.
func TestExactBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		mail := quote(supplier)
		mail.Text = "a\x00b \u2028 <b>&amp;</b> 9007199254740993 {\"b\":1,\"a\":2}"
		mail.HTML = "<p title='x'>é \U0001F4E8</p>"
		state := []byte(`{"b":1,"a":{"z":9007199254740993,"z":2},"text":"a\u0000b"}`)
		sealed, err := r.mail.Seal(r.srv.Inbox(), mail)
		require.NoError(t, err)
		fault := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, State: json.RawMessage(state), First: resume.Send(mail)})
		r.rest()
		fault.Disarm()
		r.jump(20 * time.Minute)
		r.rest()
		sends := r.srv.Sends()
		require.Len(t, sends, 1)
		require.Equal(t, sealed.Body, sends[0].Body)
		require.Equal(t, mail.Text, sends[0].Text)
		for _, req := range r.srv.Requests() {
			if req.Op == efatest.OpSend {
				require.Equal(t, sealed.Body, req.Body)
				require.Equal(t, sends[0].Key, req.IdempotencyKey)
			}
		}
		require.Equal(t, string(state), string(r.workflow("w1").State))
		r.srv.Check(t)
	})
}
