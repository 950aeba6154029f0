package resume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// B16: one message, two event IDs.
func TestOneMessageUnderTwoEventIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		again := r.srv.Announce(in.MessageID)
		require.NotEqual(t, in.EventID, again.EventID)
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)), "in one batch")
		r.srv.Announce(in.MessageID)
		r.rest()
		r.last(1)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))

		strange := r.srv.Inbound(efatest.Mail{From: "who@example.com", Text: "2"})
		r.rest()
		r.srv.Announce(strange.MessageID)
		r.rest()
		require.Equal(t, strange.EventID, r.queued().EventID, "once in the queue, too")
	})
}

// The doors may hand over an event again, in any batch.
func TestOneEventHandedInAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		r.fed = 0
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		r.exec("delete from {s}seen") // even if the inbox has forgotten its ID
		r.fed = 0
		r.rest()
		r.last(1)
		require.Equal(t, 1, r.count("select count(*) from {s}mail where message = '"+in.MessageID+"'"))
	})
}

// B18: a copy of our own mail comes back in.
func TestEchoesWakeNobody(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.Echo(efatest.All) // on the thread, from the inbox's own address
		r.ask("w1", supplier)
		own := r.srv.Inbound(efatest.Mail{From: strings.ToUpper(r.srv.Address(r.srv.Inbox())), Text: "on a new thread"})
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Zero(t, r.workflow("w1").Pending)
		require.Equal(t, 2, r.count("select count(*) from {s}mail where place = 'settled' and reason = 'echo'"))
		require.NotEmpty(t, own.EventID)
	})
}

// An event about a message that the listing calls outbound, whatever its From.
func TestEchoesAreKnownByTheirDirection(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Inboxes: map[string][]string{"ibx_main": {"other@example.net"}}})
		sent := r.ask("w1", supplier)
		r.srv.Announce(sent.MessageID)
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, 1, r.count("select count(*) from {s}mail where place = 'settled' and reason = 'echo'"))
	})
}

// What is no concern of the engine changes nothing.
func TestForeignInboxAndUnknownEventsAreLeftAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		two := efatest.Config{Inboxes: map[string]string{"ibx_a": "a@agents.example", "ibx_z": "z@agents.example"}}
		r := open(listens, resume.Config{}, two)
		r.ask("w1", supplier)
		before := r.count("select count(*) from {s}mail")
		r.srv.Inbound(efatest.Mail{Inbox: "ibx_z", From: supplier, Text: "to somebody else"})
		r.srv.Emit(efatest.Event{Type: "message.invented", Inbox: "ibx_a", Data: map[string]any{"inbox_id": "ibx_a"}})
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.Equal(t, before, r.count("select count(*) from {s}mail"))
		require.ErrorIs(t, r.tryStart(resume.Start{ID: "w2", Inbox: "ibx_z", Counterparty: supplier}), resume.ErrInbox)
	})
}

// An event that names no message cannot be read by anybody but a person.
func TestReceivedWithoutAMessageIsBeforeAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.Emit(efatest.Event{Type: efatest.MessageReceived, Inbox: "ibx_main", Data: map[string]any{"inbox_id": "ibx_main", "thread_id": "thd_x"}})
		r.rest()
		require.Equal(t, resume.ReasonUnreadable, r.queued().Reason)
	})
}

// Events of another stream are a fault of the wiring, and stop it.
func TestForeignStreamIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		ev := []events.Event{{ID: "evt_1", Stream: "another", Kind: events.KindReceived, Inbox: "ibx_main", Message: "msg_1"}}
		var err error
		if r.pg != nil {
			tx, berr := r.pool.Begin(t.Context())
			require.NoError(t, berr)
			defer func() { _ = tx.Rollback(t.Context()) }()
			err = r.pg.Route(t.Context(), tx, ev)
		} else {
			tx, berr := r.db.BeginTx(t.Context(), nil)
			require.NoError(t, berr)
			defer func() { _ = tx.Rollback() }()
			err = r.lite.Route(t.Context(), tx, ev)
		}
		require.ErrorIs(t, err, resume.ErrStream)
		require.ErrorIs(t, err, resume.Err)
		r.jump(time.Second)
		require.Zero(t, r.count("select count(*) from {s}mail"))
	})
}
