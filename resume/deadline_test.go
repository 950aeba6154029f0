package resume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

const day = 24 * time.Hour

// waits starts a workflow whose question may wait for two days.
func (r *rig) waits(id string) efatest.Send {
	r.t.Helper()
	before := len(r.srv.Sends())
	r.start(resume.Start{ID: id, Counterparty: supplier, First: question(supplier).Wait(2 * day)})
	r.rest()
	return r.srv.Sends()[before]
}

func TestDeadlineFiresOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.waits("w1")
		w := r.workflow("w1")
		require.WithinDuration(t, time.Now().Add(2*day), w.Deadline, time.Minute)
		require.Contains(t, w.WaitingFor(), "a reply, until "+w.Deadline.UTC().Format("2006-01-02"))
		r.jump(2*day - time.Minute)
		r.rest()
		require.Empty(t, r.runs())
		r.jump(2 * time.Minute)
		r.rest()
		run := r.last(1)
		require.True(t, run.TimedOut)
		require.Equal(t, int64(1), run.Timeouts)
		require.Empty(t, run.Inputs)
		require.Equal(t, int64(1), run.Step)
		r.jump(10 * day)
		r.rest()
		r.last(1)
	})
}

// The time that the mail waited for the provider is not the counterparty's.
func TestDeadlineCountsFromAcceptance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		outage := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier).Wait(2 * day)})
		r.rest()
		require.True(t, r.workflow("w1").Deadline.IsZero())
		r.jump(3 * day)
		r.rest()
		require.Empty(t, r.runs(), "nothing times out before it left")
		outage.Disarm()
		r.jump(time.Hour)
		r.rest()
		require.WithinDuration(t, time.Now().Add(2*day), r.workflow("w1").Deadline, time.Minute)
		require.Empty(t, r.runs())
	})
}

// through sets what the stream's sweeper has stored.
func (r *rig) through(ago time.Duration) {
	r.t.Helper()
	moment := map[string]string{
		"postgres": "now() - interval '" + ago.String() + "'",
		"sqlite":   "cast(unixepoch('subsec') * 1000000 as integer) - " + micros(ago),
	}[r.store]
	r.exec("delete from {s}streams")
	r.exec("insert into {s}streams (name, origin, environment, credential, attached_at, through, created_at) values ('" +
		r.mail.Stream().Name + "', '', '', '', " + moment + ", " + moment + ", " + moment + ")")
}

func TestDeadlineDoesNotFireIntoAnOutage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.waits("w1")
		answered := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "in time, but nobody was there"})
		r.jump(2*day + time.Hour)
		r.through(3 * time.Hour)
		require.False(t, r.once(resume.JobWork), "what arrived before the deadline may not be received yet")
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		r.through(time.Minute)
		r.rest() // the sweep hands the reply in
		run := r.last(1)
		require.False(t, run.TimedOut)
		require.Equal(t, []string{answered.MessageID}, messages(run))
	})
}

func TestDeadlineFiresOnceReceivingIsCurrent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.waits("w1")
		r.jump(2*day + time.Hour)
		r.through(3 * time.Hour)
		r.once(resume.JobWork)
		require.Empty(t, r.runs())
		r.jump(5 * time.Second)
		r.through(time.Second)
		r.rest()
		require.True(t, r.last(1).TimedOut)
	})
}

func TestReplyCommittedFirstWins(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.waits("w1")
		r.jump(2*day + time.Minute)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "late, but before you noticed"})
		r.feed()
		r.rest()
		run := r.last(1)
		require.False(t, run.TimedOut)
		require.Zero(t, run.Timeouts)
		require.Equal(t, []string{in.MessageID}, messages(run))
		r.jump(day)
		r.rest()
		r.last(1)
	})
}

func TestReplyWhileTheDeadlinesRunWorksDropsItsResult(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		sent := r.waits("w1")
		var in efatest.Received
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if run.TimedOut {
				in = r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "here I am"})
				r.feed()
				return resume.Send(client.Outgoing{To: []string{supplier}, Subject: "are you there?", Text: "?"}).Save("reminded"), nil
			}
			return answer(run, "thanks").Done().Save("thanked"), nil
		})
		r.jump(2*day + time.Minute)
		r.rest()
		runs := r.runs()
		require.Len(t, runs, 2)
		require.Equal(t, []string{in.MessageID}, messages(runs[1]))
		require.False(t, runs[1].TimedOut)
		require.Zero(t, runs[1].Timeouts)
		require.Equal(t, int64(1), runs[1].Attempt, "being outrun is no failure")
		sends := r.srv.Sends()
		require.Len(t, sends, 2)
		require.Equal(t, "thanks", sends[1].Text)
		require.JSONEq(t, `"thanked"`, string(r.workflow("w1").State))
	})
}

// The reminder ladder: the step's own business.
func TestRemindersAndTimeouts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		var timeouts []int64
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			timeouts = append(timeouts, run.Timeouts)
			switch {
			case !run.TimedOut:
				return resume.Wait(day), nil
			case run.Timeouts < 3:
				return resume.Send(client.Outgoing{To: []string{supplier}, Subject: "reminder", Text: "?"}).Wait(day), nil
			}
			return resume.Done(), nil
		}, resume.Config{})
		sent := r.waits("w1")
		r.jump(3 * day)
		r.rest()
		r.jump(day + time.Minute)
		r.rest()
		require.Equal(t, []int64{1, 2}, timeouts)
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "give me a day"})
		r.rest()
		for range 3 {
			r.jump(day + time.Minute)
			r.rest()
		}
		require.Equal(t, []int64{1, 2, 2, 1, 2, 3}, timeouts, "the answer sees what it took, and begins the count anew")
		require.Equal(t, resume.StatusDone, r.status("w1"))
		require.Len(t, r.srv.Sends(), 5)
	})
}

// A failing timed-out run is still the deadline's when it is tried again.
func TestTimedOutRunThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.waits("w1")
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			r.do(listens)
			return resume.Next{}, errors.New("no")
		})
		r.jump(3 * day)
		r.rest()
		r.jump(time.Minute)
		r.rest()
		run := r.last(2)
		require.True(t, run.TimedOut)
		require.Equal(t, int64(1), run.Timeouts)
		require.Equal(t, int64(2), run.Attempt)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

func TestStartMayOnlyWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: resume.Wait(time.Hour)})
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.srv.Sends())
		r.jump(2 * time.Hour)
		r.rest()
		require.True(t, r.last(1).TimedOut)
	})
}
