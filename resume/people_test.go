package resume_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// ambiguous is a rig with two workflows of one address and mail that may be
// for either.
func ambiguous(t *testing.T, open opener, cfg resume.Config) (*rig, efatest.Received) {
	t.Helper()
	if cfg.Hold == 0 {
		cfg.Hold = 10 * time.Minute // far beyond what a slow machine needs
	}
	r := open(listens, cfg)
	r.ask("w1", supplier)
	r.ask("w2", supplier)
	in := r.srv.Inbound(efatest.Mail{From: supplier, Text: "yes, go ahead"})
	r.rest()
	return r, in
}

func decisions(t *testing.T, r *rig, event string) (what []string) {
	t.Helper()
	ms, err := r.eng.Decisions(t.Context(), event)
	require.NoError(t, err)
	for _, m := range ms {
		require.WithinDuration(t, time.Now(), m.At, 40*day)
		what = append(what, m.What+" "+m.Detail)
	}
	return what
}

func TestQueueShowsWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r, in := ambiguous(t, open, resume.Config{})
		it := r.queued()
		require.Equal(t, in.EventID, it.EventID)
		require.Equal(t, in.MessageID, it.Message)
		require.Equal(t, in.ThreadID, it.Thread)
		require.Equal(t, r.srv.Inbox(), it.Inbox)
		require.Equal(t, "received", it.Kind)
		require.Equal(t, resume.ReasonSeveralCandidates, it.Reason)
		require.WithinDuration(t, time.Now(), it.At, time.Hour)
		require.Len(t, it.Candidates, 2)
		for i, c := range it.Candidates {
			require.Equal(t, []string{"w1", "w2"}[i], c.Workflow)
			require.Equal(t, resume.StatusWaiting, c.Status)
			require.Equal(t, int64(1), c.Step)
			require.Equal(t, "Quote request", c.Subject)
			require.WithinDuration(t, time.Now(), c.SentAt, time.Hour)
		}
	})
}

// A candidate shows the mail that it waits for an answer to: not one that is
// held, or that never left.
func TestCandidatesShowTheMailThatLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r, _ := ambiguous(t, open, resume.Config{})
		r.srv.HoldSends(efatest.All)
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			return resume.Send(client.Outgoing{To: []string{supplier}, Subject: "Reminder", Text: "?"}), nil
		})
		require.NoError(t, r.signal("w1", "remind", ""))
		r.rest()
		r.start(resume.Start{ID: "w3", Counterparty: supplier, First: question(supplier)})
		r.rest()
		r.srv.Inbound(efatest.Mail{From: supplier, Text: "which?"})
		r.rest()
		q := r.queue()
		for _, c := range q[len(q)-1].Candidates {
			if c.Workflow == "w3" {
				require.Equal(t, resume.Candidate{Workflow: "w3", Status: resume.StatusAwaitingApproval}, c)
			} else {
				require.Equal(t, int64(1), c.Step, c.Workflow)
				require.Equal(t, "Quote request", c.Subject)
				require.WithinDuration(t, time.Now(), c.SentAt, time.Hour)
			}
		}
		require.Len(t, q[len(q)-1].Candidates, 3)
	})
}

func TestQueueIsPaged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		var want []string
		for range 5 {
			want = append(want, r.srv.Inbound(efatest.Mail{From: "who@example.com", Text: "?"}).EventID)
		}
		r.rest()
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			items, err := r.eng.Queue(ctx, after, 2)
			require.NoError(t, err)
			if len(items) == 0 {
				break
			}
			require.LessOrEqual(t, len(items), 2)
			for _, it := range items {
				got = append(got, it.EventID)
			}
		}
		require.Equal(t, want, got, "oldest first, each once")
	})
}

func TestBindIsHeldThenRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "ann"))
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "bob"), "the same again is fine")
		require.Empty(t, r.queue())
		r.rest()
		require.Empty(t, r.runs(), "held, so that undo is real")
		held := r.workflow("w2")
		require.Equal(t, "a worker, from "+held.Due.UTC().Format(time.RFC3339), held.WaitingFor())
		r.jump(11 * time.Minute)
		r.rest()
		run := r.last(1)
		require.Equal(t, "w2", run.ID)
		require.Equal(t, []string{in.MessageID}, messages(run))
		require.Equal(t, "person", run.Inputs[0].MatchedBy)
		require.Equal(t, resume.ProofPerson, run.Inputs[0].Proof)
		require.Equal(t, []string{"bound to w2 by ann"}, decisions(t, r, in.EventID))

		next := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: in.MessageID, Text: "and more"})
		r.rest()
		require.Equal(t, []string{next.MessageID}, messages(r.last(2)), "the thread came along")
		require.Equal(t, "w2", r.runs()[1].ID)

		var handled *resume.HandledError
		err := r.eng.Bind(ctx, in.EventID, "w1", "bob")
		require.ErrorAs(t, err, &handled)
		require.ErrorIs(t, err, resume.Err)
		require.Equal(t, "ann", handled.By)
		require.Equal(t, "bind", handled.Decision)
		require.Equal(t, "w2", handled.Workflow)
		require.WithinDuration(t, time.Now(), handled.At, time.Hour)
		require.ErrorIs(t, r.eng.Undo(ctx, in.EventID, "ann"), resume.ErrTooLate)
		require.ErrorIs(t, r.eng.Rebind(ctx, in.EventID, "w1", "ann"), resume.ErrTooLate)
		require.ErrorAs(t, r.eng.Dismiss(ctx, in.EventID, "x", "ann"), &handled)
	})
}

func TestRunNowSkipsTheHold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r, in := ambiguous(t, open, resume.Config{Hold: time.Hour})
		require.NoError(t, r.eng.Bind(t.Context(), in.EventID, "w1", "ann"))
		r.rest()
		require.Empty(t, r.runs())
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		require.ErrorIs(t, r.eng.RunNow(t.Context(), "w9", "ann"), resume.ErrNotFound)
	})
}

// A workflow that waits for a reply is not made to run.
func TestRunNowOfAWaitingWorkflowDoesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.waits("w1")
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

func TestUndoOfABind(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		before := r.queued()
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "ann"))
		require.NoError(t, r.eng.Undo(ctx, in.EventID, "ann"))
		require.NoError(t, r.eng.Undo(ctx, in.EventID, "ann"), "the same again is fine")
		require.Equal(t, before, r.queued(), "as before")
		r.jump(time.Hour)
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, resume.StatusWaiting, r.status("w2"))
		require.Zero(t, r.workflow("w2").Pending)
		require.Equal(t, []string{"bound to w2 by ann", "unbound from w2 by ann"}, decisions(t, r, in.EventID))

		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: in.MessageID, Text: "on the same thread"})
		r.rest()
		require.Len(t, r.queue(), 2, "the thread is nobody's again")
	})
}

// A thread of a workflow that is over moves with a bind, and back with its undo.
func TestUndoGivesAThreadBackToItsEarlierOwner(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		r.waits("w1")
		r.start(resume.Start{ID: "w2", Counterparty: "other@example.com"})
		r.rest()
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
		question := r.srv.Sends()[0]
		late := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: question.MessageID, Text: "late"})
		r.rest()
		before := r.queue()
		owns := func(id, by string) bool {
			return r.count("select count(*) from {s}threads where workflow = '"+id+"' and matched_by = '"+by+"'") == 1
		}
		require.True(t, owns("w1", "send"))

		require.NoError(t, r.eng.Bind(ctx, late.EventID, "w2", "ann"))
		require.True(t, owns("w2", "person"))
		require.NoError(t, r.eng.Undo(ctx, late.EventID, "ann"))
		require.True(t, owns("w1", "send"))
		require.Equal(t, before, r.queue())

		require.NoError(t, r.eng.Bind(ctx, late.EventID, "w2", "ann"))
		r.jump(time.Minute)
		r.rest()
		require.Equal(t, []string{late.MessageID}, messages(r.last(2)))
	})
}

// The same where the earlier owner is an earlier life of the same ID.
func TestUndoGivesAThreadBackToAnEarlierRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil }, resume.Config{})
		question := r.ask("w1", supplier)
		for range 3 { // the first is answered, the others are late
			r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: question.MessageID, Text: "100 EUR"})
			r.rest()
		}
		r.ask("w1", "other@example.com")
		before := r.queue()
		require.Len(t, before, 2)
		require.NoError(t, r.eng.Bind(ctx, before[0].EventID, "w1", "ann"))
		require.Empty(t, r.queue(), "the other came along")
		require.NoError(t, r.eng.Undo(ctx, before[0].EventID, "ann"))
		require.Equal(t, before, r.queue())
		require.Zero(t, r.workflow("w1").Pending)
		require.Zero(t, r.count("select count(*) from {s}threads where matched_by = 'person'"))
	})
}

// Two mails of a thread were bound, each by itself. The undo of one is not that
// of the other: the thread stays until both are undone.
func TestUndoOfOneOfTwoBinds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{Hold: 10 * time.Minute, Policy: resume.CounterpartyOnly})
		question := r.waits("w1")
		reply := func(from string) string {
			in := r.srv.Inbound(efatest.Mail{From: from, ReplyTo: question.MessageID, Text: "?"})
			r.rest()
			return in.EventID
		}
		judged := reply("colleague@example.com")
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
		late := reply(supplier)
		r.ask("w2", "other@example.com")
		before := r.queue()
		require.Len(t, before, 2)
		bound := func() int {
			return r.count("select count(*) from {s}threads where workflow = 'w2' and matched_by = 'person'")
		}
		for _, order := range [][]string{{late, judged}, {judged, late}} {
			require.NoError(t, r.eng.Bind(ctx, late, "w2", "ann"))
			require.NoError(t, r.eng.Bind(ctx, judged, "w2", "ann"))
			require.Empty(t, r.queue())
			require.NoError(t, r.eng.Undo(ctx, order[0], "ann"))
			require.Equal(t, 1, bound())
			require.EqualValues(t, 1, r.workflow("w2").Pending)
			require.Equal(t, order[0], r.queued().EventID)
			require.NoError(t, r.eng.Undo(ctx, order[1], "ann"))
			require.Zero(t, bound())
			require.Zero(t, r.workflow("w2").Pending)
			require.Equal(t, before, r.queue())
		}
	})
}

// What the engine settled by itself can be seen, and a person may know better.
func TestSettledMailIsListedAndBound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{})
		r.waits("w1")
		var want []string // newest first
		for range 3 {
			in := r.srv.Inbound(efatest.Mail{From: "mailer-daemon@example.com", Text: "could not be delivered"})
			want = append([]string{in.EventID}, want...)
			r.rest()
		}
		dismissed := r.srv.Inbound(efatest.Mail{From: "who@example.com", Text: "?"})
		r.rest()
		require.NoError(t, r.eng.Dismiss(ctx, dismissed.EventID, "spam", "ann"))
		var got []string
		for before := ""; ; before = got[len(got)-1] {
			items, err := r.eng.Settled(ctx, before, 2)
			require.NoError(t, err)
			if len(items) == 0 {
				break
			}
			for _, it := range items {
				require.Equal(t, "delivery_notice", it.Reason)
				got = append(got, it.EventID)
			}
		}
		require.Equal(t, want, got)
		require.NoError(t, r.eng.Bind(ctx, got[0], "w1", "ann"))
		r.jump(time.Minute)
		r.rest()
		require.Len(t, r.last(1).Inputs, 1)
		items, err := r.eng.Settled(ctx, "", 0)
		require.NoError(t, err)
		require.Len(t, items, 2)
	})
}

// Of a flood no more than so many mails a minute are read, and who waits on a
// known thread does not notice.
func TestAFloodIsReadSlowly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		resume.ReadsAMinute(r.eng, 30)
		question := r.waits("w1")
		for range 50 {
			r.srv.Inbound(efatest.Mail{From: "loop@example.com", Text: "out of office"})
		}
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: question.MessageID, Text: "100 EUR"})
		for r.feed() || r.once(resume.JobMatch) || r.once(resume.JobWork) { //nolint:revive // until there is nothing to do
		}
		require.Len(t, r.last(1).Inputs, 1)
		require.Equal(t, 20, r.count("select count(*) from {s}mail where place = 'unplaced'"))
	})
}

// A bind takes the thread's other mail along; its undo gives it back.
func TestBindOfOneOfTwoMailsIsHeldAndUndoneWhole(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: in.MessageID, Text: "P.S."})
		r.rest()
		before := r.queue()
		require.Len(t, before, 2)
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w2", "ann"))
		r.rest()
		require.Empty(t, r.runs(), "what came along is held, too")
		require.NoError(t, r.eng.Undo(ctx, in.EventID, "ann"))
		require.Equal(t, before, r.queue())
		require.Zero(t, r.workflow("w2").Pending)
	})
}

func TestRebindMovesMailAndThread(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w1", "ann"))
		require.NoError(t, r.eng.Rebind(ctx, in.EventID, "w2", "bob"))
		require.NoError(t, r.eng.Rebind(ctx, in.EventID, "w2", "bob"), "the same again is fine")
		require.Zero(t, r.workflow("w1").Pending)
		r.jump(11 * time.Minute)
		next := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: in.MessageID, Text: "2"})
		r.rest()
		run := r.last(1)
		require.Equal(t, "w2", run.ID)
		require.Equal(t, []string{in.MessageID, next.MessageID}, messages(run))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Equal(t, []string{"bound to w1 by ann", "unbound from w1 by bob", "bound to w2 by bob"}, decisions(t, r, in.EventID))
	})
}

// A run that works on mail which a person has moved meanwhile takes none of it,
// however the two came to see the same mail (here the hold begins anew).
func TestRunTakesNoMailThatWasMoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w1", "ann"))
		require.NoError(t, r.eng.RunNow(ctx, "w1", "ann"))
		r.wrapStep(func() {
			back := map[string]string{"postgres": "now() + interval '1 minute'", "sqlite": "due + 60000000"}[r.store]
			r.exec("update {s}mail set due = " + back + " where place = 'input'")
			require.NoError(t, r.eng.Rebind(ctx, in.EventID, "w2", "bob"))
		})
		r.rest()
		require.Equal(t, "w1", r.last(1).ID)
		require.Zero(t, r.count("select count(*) from {s}mail where consumed_by is not null"))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.NoError(t, r.eng.RunNow(ctx, "w2", "bob"))
		r.rest()
		run := r.last(2)
		require.Equal(t, "w2", run.ID)
		require.Equal(t, []string{in.MessageID}, messages(run))
	})
}

// All mail of a late thread goes where its first does, and on with a rebind.
func TestMailOfAThreadStaysTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(listens, resume.Config{Hold: 10 * time.Minute})
		question := r.waits("w1")
		r.start(resume.Start{ID: "w2", Counterparty: "other@example.com"})
		r.start(resume.Start{ID: "w3", Counterparty: "other@example.com"})
		require.NoError(t, r.eng.Cancel(ctx, "w1", "ann"))
		one := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: question.MessageID, Text: "late"})
		two := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: question.MessageID, Text: "and more"})
		r.rest()
		require.NoError(t, r.eng.Bind(ctx, one.EventID, "w2", "ann"))
		require.Empty(t, r.queue())
		require.ErrorIs(t, r.eng.Bind(ctx, two.EventID, "w3", "bob"), resume.Err)
		require.NoError(t, r.eng.Rebind(ctx, one.EventID, "w3", "bob"))
		require.Empty(t, r.queue())
		require.Zero(t, r.workflow("w2").Pending)
		before := len(r.runs())
		r.jump(11 * time.Minute)
		r.rest()
		run := r.last(before + 1)
		require.Equal(t, "w3", run.ID)
		require.Equal(t, []string{one.MessageID, two.MessageID}, messages(run))
	})
}

// Who binds mail that went along with other mail where it went has decided too.
func TestBindOfWhatCameAlong(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, one := ambiguous(t, open, resume.Config{})
		two := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: one.MessageID, Text: "P.S."})
		r.rest()
		require.NoError(t, r.eng.Bind(ctx, one.EventID, "w2", "ann"))
		require.NoError(t, r.eng.Bind(ctx, two.EventID, "w2", "bob"), "it is there already")
		require.NoError(t, r.eng.Bind(ctx, two.EventID, "w2", "bob"))
		require.Equal(t, []string{"bound to w2 by bob"}, decisions(t, r, two.EventID))
		var handled *resume.HandledError
		require.ErrorAs(t, r.eng.Bind(ctx, two.EventID, "w1", "ann"), &handled)
		require.Equal(t, "bob", handled.By)

		require.NoError(t, r.eng.Undo(ctx, one.EventID, "ann"))
		require.Equal(t, one.EventID, r.queued().EventID, "what bob decided stands")
		r.jump(11 * time.Minute)
		r.rest()
		require.Equal(t, []string{two.MessageID}, messages(r.last(1)))
		require.NoError(t, r.eng.Bind(ctx, two.EventID, "w2", "ann"))
	})
}

func TestDismissAndUndo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		before := r.queued()
		require.NoError(t, r.eng.Dismiss(ctx, in.EventID, "spam", "ann"))
		require.NoError(t, r.eng.Dismiss(ctx, in.EventID, "spam", "bob"), "the same again is fine")
		require.Empty(t, r.queue())
		var handled *resume.HandledError
		require.ErrorAs(t, r.eng.Bind(ctx, in.EventID, "w1", "bob"), &handled)
		require.Equal(t, "dismiss", handled.Decision)
		require.Equal(t, "ann", handled.By)
		r.jump(30 * day)
		r.rest()
		require.Empty(t, r.runs())
		require.NoError(t, r.eng.Undo(ctx, in.EventID, "bob"), "at any time")
		after := r.queued()
		after.At, before.At = time.Time{}, time.Time{}
		for i := range after.Candidates {
			after.Candidates[i].SentAt, before.Candidates[i].SentAt = time.Time{}, time.Time{}
		}
		require.Equal(t, before, after)
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w1", "bob"))
		require.Equal(t, []string{"dismissed by ann: spam", "undone by bob", "bound to w1 by bob"}, decisions(t, r, in.EventID))
	})
}

func TestDecisionsOnWhatIsNotThere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r, in := ambiguous(t, open, resume.Config{})
		require.ErrorIs(t, r.eng.Bind(ctx, "evt_none", "w1", "ann"), resume.ErrNotFound)
		require.ErrorIs(t, r.eng.Bind(ctx, in.EventID, "w9", "ann"), resume.ErrNotFound)
		require.ErrorIs(t, r.eng.Dismiss(ctx, "evt_none", "x", "ann"), resume.ErrNotFound)
		require.ErrorIs(t, r.eng.Undo(ctx, "evt_none", "ann"), resume.ErrNotFound)
		require.NoError(t, r.eng.Undo(ctx, in.EventID, "ann"), "nothing to undo")
		require.Equal(t, in.EventID, r.queued().EventID)
		r.rest()
	})
}

// Two people at once: one decision counts, the other hears whose.
func TestTwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := context.Background()
		r, in := ambiguous(t, open, resume.Config{})
		acts := []func() error{
			func() error { return r.eng.Bind(ctx, in.EventID, "w1", "ann") },
			func() error { return r.eng.Bind(ctx, in.EventID, "w2", "bob") },
			func() error { return r.eng.Dismiss(ctx, in.EventID, "spam", "eve") },
			func() error { return r.eng.Bind(ctx, in.EventID, "w1", "ann") },
		}
		errs := make([]error, len(acts))
		var wg sync.WaitGroup
		for i, act := range acts {
			wg.Go(func() { errs[i] = act() })
		}
		wg.Wait()
		won := 0
		for i, err := range errs[:3] {
			var handled *resume.HandledError
			switch {
			case err == nil:
				won++
			case errors.As(err, &handled):
				require.NotEqual(t, []string{"ann", "bob", "eve"}[i], handled.By)
			default:
				t.Fatal(err)
			}
		}
		require.Equal(t, 1, won)
		require.Equal(t, errs[0] == nil, errs[3] == nil)
		require.Len(t, decisions(t, r, in.EventID), 1)
		require.LessOrEqual(t, r.workflow("w1").Pending+r.workflow("w2").Pending, int64(1))
	})
}

// What the engine settled by a verdict can be bound: an echo it mistook, a
// robot's mail that is the answer.
func TestSettledMailCanBeBound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		reject := func(in resume.Input, _ string) resume.Verdict { return resume.RejectOut }
		r := open(listens, resume.Config{Policy: reject})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Empty(t, r.runs())
		require.Empty(t, r.queue())
		require.NoError(t, r.eng.Bind(ctx, in.EventID, "w1", "ann"))
		r.jump(11 * time.Minute)
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}
