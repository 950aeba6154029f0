package resume_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

func TestSignalWakesOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		data := "paid\x00\xff: {}" // as it is
		require.NoError(t, r.signal("w1", "payment:17", data))
		require.NoError(t, r.signal("w1", "payment:17", "other"), "the same again is no second input")
		require.NoError(t, r.signal("w1", "payment:18", ""))
		r.rest()
		run := r.last(1)
		require.Len(t, run.Inputs, 2)
		require.Equal(t, resume.InputSignal, run.Inputs[0].Kind)
		require.Equal(t, "payment:17", run.Inputs[0].Signal)
		require.Equal(t, data, string(run.Inputs[0].Data))
		require.Equal(t, "signal", run.Inputs[0].MatchedBy)
		require.Equal(t, "payment:18", run.Inputs[1].Signal)
		require.NoError(t, r.signal("w1", "payment:17", "after it was consumed"))
		r.rest()
		r.last(1)
	})
}

func TestSignalWithAReplyIsOneRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "click", "x"))
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		r.rest()
		run := r.last(1)
		require.Len(t, run.Inputs, 2)
		require.Equal(t, []string{in.MessageID}, messages(run))
	})
}

func TestSignalThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		require.ErrorIs(t, r.signal("w2", "s", ""), resume.ErrNotFound)
		for _, id := range []string{"", "a b", "a\n", strings.Repeat("x", 201)} {
			require.ErrorIs(t, r.signal("w1", id, ""), resume.Err)
		}
		require.NoError(t, r.signal("w1", strings.Repeat("x", 200), ""))
		r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil })
		r.rest()
		require.ErrorIs(t, r.signal("w1", "late", ""), resume.ErrTerminal)
	})
}

// The same signal ID for another life of the workflow is another signal.
func TestSignalOfAnotherLife(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil }, resume.Config{})
		for i := range 2 {
			r.ask("w1", supplier)
			require.NoError(t, r.signal("w1", "s", ""))
			r.rest()
			r.last(i + 1)
		}
	})
}

func TestReviewWaitsForAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		sent := r.waits("w1")
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			return resume.Review("the price is odd").Save("odd"), nil
		})
		first := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		w := r.workflow("w1")
		require.Equal(t, resume.StatusNeedsReview, w.Status)
		require.Equal(t, "a person: the price is odd", w.WaitingFor())
		require.JSONEq(t, `"odd"`, string(w.State))
		require.Equal(t, []string{first.MessageID}, messages(r.last(1)))

		second := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "2"})
		r.rest()
		r.jump(10 * day)
		r.rest()
		r.last(1)
		require.Equal(t, int64(1), r.workflow("w1").Pending)

		r.do(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Review("still"), nil })
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Equal(t, []string{second.MessageID}, messages(r.last(2)))
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Empty(t, r.last(3).Inputs, "it runs even with nothing new")
	})
}
