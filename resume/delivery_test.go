package resume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// happened says whether a line of the timeline begins with what.
func (r *rig) happened(id, what, detail string) bool {
	r.t.Helper()
	tl, err := r.eng.Timeline(r.t.Context(), id)
	require.NoError(r.t, err)
	for _, m := range tl {
		if m.What == what && m.Detail == detail {
			return true
		}
	}
	return false
}

func TestFailedDeliveryIsAnInput(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		for _, d := range []client.Delivery{client.DeliveryBounced, client.DeliveryFailed, client.DeliveryRejected, client.DeliveryComplained} {
			sent := r.ask("w-"+string(d), string(d)+"@example.com")
			r.srv.DeliveryUpdate(sent.MessageID, string(d))
			r.rest()
			runs := r.runs()
			run := runs[len(runs)-1]
			require.Equal(t, "w-"+string(d), run.ID)
			require.Len(t, run.Inputs, 1)
			in := run.Inputs[0]
			require.Equal(t, resume.InputBounce, in.Kind)
			require.Equal(t, d, in.Delivery)
			require.Equal(t, sent.MessageID, in.Message.ID)
			require.False(t, in.Suspected, "the provider says so")
			require.Equal(t, "send", in.MatchedBy)
			require.Empty(t, run.Replies())
		}
	})
}

func TestGoodDeliveryIsOnlyNoted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		for _, word := range []string{"delivered", "deferred", "opened?"} {
			r.srv.DeliveryUpdate(sent.MessageID, word)
		}
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.True(t, r.happened("w1", "delivery", "delivered "+sent.MessageID))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// As documented, the event names the message and nothing else: the state
// stands in the thread's listing.
func TestDeliveryStateIsReadFromTheListing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		r.srv.SetStatus(sent.MessageID, "bounced")
		r.srv.DeliveryUpdate(sent.MessageID, "")
		for range 2 {
			r.rest()
			r.jump(time.Minute)
		}
		in := r.last(1).Inputs[0]
		require.Equal(t, resume.InputBounce, in.Kind)
		require.Equal(t, client.DeliveryBounced, in.Delivery)
	})
}

func TestDeliveryStateThatNobodySaysIsNoNews(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		r.srv.DeliveryUpdate(sent.MessageID, "")
		for range 3 {
			r.rest()
			r.jump(time.Minute)
		}
		require.Empty(t, r.runs())
		require.Zero(t, r.count("select count(*) from {s}mail where place = 'unplaced'"), "it is not looked at for ever")
		require.Empty(t, r.queue())
	})
}

// Snapshots have versions: an older one that comes later says nothing. No such
// numbers at Email for Agents, so the events are made here.
func TestOlderDeliverySnapshotIsStale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		update := func(id string, version int64, d client.Delivery) {
			r.route(events.Event{ID: id, Kind: events.KindDelivery, Inbox: r.srv.Inbox(), Message: sent.MessageID, Delivery: d, Version: version})
			r.rest()
		}
		update("e3", 3, client.DeliveryDelivered)
		update("e2", 2, client.DeliveryBounced)
		require.Empty(t, r.runs())
		update("e4", 4, client.DeliveryComplained)
		require.Equal(t, client.DeliveryComplained, r.last(1).Inputs[0].Delivery)
		require.Equal(t, 1, r.count("select count(*) from {s}mail where reason = 'stale'"))
	})
}

// The bounce may be quicker than the answer that names the message.
func TestBounceBeforeTheMessageIsKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.OnSend(func(s efatest.Send) {
			r.srv.DeliveryUpdate(s.MessageID, "bounced")
			r.feed()
			r.once(resume.JobMatch)
		})
		r.ask("w1", supplier)
		for range 2 {
			r.rest()
			r.jump(time.Minute)
		}
		require.Equal(t, client.DeliveryBounced, r.last(1).Inputs[0].Delivery)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

func TestDeliveryOfForeignMailIsNobodys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		out, err := r.mail.Send(t.Context(), "by-hand", seal(t, r, "by hand"))
		require.NoError(t, err)
		r.srv.DeliveryUpdate(out.Message, "bounced")
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.Zero(t, r.count("select count(*) from {s}mail where place = 'unplaced'"))
	})
}

// A bounce for a workflow that is over wakes nobody and troubles nobody.
func TestBounceAfterTheEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
		r.srv.DeliveryUpdate(sent.MessageID, "bounced")
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.Equal(t, resume.StatusCanceled, r.status("w1"))
		require.True(t, r.happened("w1", "delivery", "bounced "+sent.MessageID))
	})
}

// A daemon's mail on the thread is a bounce by its looks only.
func TestDaemonMailOnTheThreadIsASuspectedBounce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: "MAILER-DAEMON@mx.example.com", ReplyTo: sent.MessageID, Text: "user unknown"})
		r.rest()
		got := r.last(1).Inputs[0]
		require.Equal(t, resume.InputBounce, got.Kind)
		require.True(t, got.Suspected)
		require.Equal(t, in.MessageID, got.Message.ID)
		require.Equal(t, "user unknown", got.Body.Text.Text())
		require.Empty(t, r.runs()[0].Replies())
	})
}

func TestDaemonMailElsewhereIsSettledAndCanBeBound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: "postmaster@example.com", Text: "about mail of yours"})
		r.rest()
		require.Empty(t, r.queue())
		require.Equal(t, 1, r.count("select count(*) from {s}mail where place = 'settled' and reason = 'delivery_notice'"))
		require.NoError(t, r.eng.Bind(t.Context(), in.EventID, "w1", "ann"))
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Equal(t, resume.InputBounce, r.last(1).Inputs[0].Kind)
	})
}
