package resume_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

func TestReplyIsShownWithAllThatIsKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			return answer(run, "thank you").Done(), nil
		}, resume.Config{})
		sent := r.ask("w1", supplier)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Equal(t, "a reply", r.workflow("w1").WaitingFor())

		in := r.srv.Inbound(efatest.Mail{From: "Supplier@Example.com", ReplyTo: sent.MessageID, Subject: "Re: Quote", Text: "100 EUR"})
		r.rest()

		run := r.last(1)
		require.Equal(t, "w1", run.ID)
		require.Equal(t, supplier, run.Counterparty)
		require.Equal(t, int64(1), run.Step)
		require.Equal(t, int64(1), run.Attempt)
		require.Len(t, run.Inputs, 1)
		got := run.Inputs[0]
		require.Equal(t, resume.InputReply, got.Kind)
		require.Equal(t, in.MessageID, got.Message.ID)
		require.Equal(t, in.ThreadID, got.Message.Thread)
		require.Equal(t, in.EventID, got.EventID)
		require.Equal(t, int64(1), got.Step)
		require.Equal(t, "100 EUR", got.Body.Text.Text())
		require.Equal(t, "Re: Quote", got.Message.Subject.Text())
		require.Equal(t, "thread", got.MatchedBy)
		require.Equal(t, resume.ProofThreadAndSender, got.Proof)
		require.WithinDuration(t, time.Now(), got.At, time.Hour, "the moment survives the session's time zone")

		sends := r.srv.Sends()
		require.Len(t, sends, 2)
		require.Equal(t, in.MessageID, sends[1].ReplyTo)
		require.Equal(t, resume.StatusDone, r.status("w1"))
		require.Empty(t, r.queue())
		r.srv.Check(t)
	})
}

// B1: the article's own example.
func TestCorrectionWhileTheAgentAnswers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		var correction efatest.Received
		sent := r.ask("w1", supplier)
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if correction.MessageID == "" { // thirty seconds later, while the model thinks
				correction = r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "sorry, 90 EUR"})
				r.feed()
			}
			return answer(run, "noted"), nil
		})
		first := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "100 EUR"})
		r.rest()

		runs := r.runs()
		require.Len(t, runs, 2)
		require.Equal(t, []string{first.MessageID}, messages(runs[0]))
		require.Equal(t, []string{correction.MessageID}, messages(runs[1]))
		require.Len(t, r.srv.Sends(), 3, "the question and two answers")
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// B2: between the provider's acceptance and our commit.
func TestReplyWhileSending(t *testing.T) {
	t.Parallel()
	for name, onThread := range map[string]bool{"on the thread": true, "on a thread of its own": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				var in efatest.Received
				r.srv.OnSend(func(s efatest.Send) {
					m := efatest.Mail{From: supplier, Text: "by return of post"}
					if onThread {
						m.ReplyTo = s.MessageID
					}
					in = r.srv.Inbound(m)
					r.feed() // Route and matcher see it before the thread is known
					r.once(resume.JobMatch)
				})
				r.ask("w1", supplier)
				r.jump(time.Second) // the matcher looks again
				r.rest()
				require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Zero(t, r.workflow("w1").Pending)
			})
		})
	}
}

func TestReplyArrivesWhileTheAnswerIsUnderWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		sent := r.ask("w1", supplier)
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) { return answer(run, "ok"), nil })
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		require.True(t, r.once(resume.JobWork))
		require.Equal(t, resume.StatusSending, r.status("w1"))

		second := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "2"})
		r.feed()
		require.False(t, r.once(resume.JobWork), "no step while a send has no outcome")
		require.Equal(t, int64(1), r.workflow("w1").Pending)
		r.rest()
		require.Equal(t, []string{second.MessageID}, messages(r.last(2)))
	})
}

func TestDoneWithPendingInputRunsAgain(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*resume.Run) resume.Next{
		"done":               func(*resume.Run) resume.Next { return resume.Done() },
		"send and then done": func(run *resume.Run) resume.Next { return answer(run, "bye").Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(nil, resume.Config{})
				sent := r.ask("w1", supplier)
				var second efatest.Received
				r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
					if second.MessageID == "" {
						second = r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "wait"})
						r.feed()
					}
					return next(run).Save("said bye"), nil
				})
				r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "ok"})
				r.rest()
				run := r.last(2)
				require.Equal(t, []string{second.MessageID}, messages(run))
				var saved string
				require.NoError(t, run.Unmarshal(&saved))
				require.Equal(t, "said bye", saved, "the first run's writes stand")
				require.Equal(t, resume.StatusDone, r.status("w1"))
			})
		})
	}
}

func TestStateIsKeptBetweenRuns(t *testing.T) {
	t.Parallel()
	type state struct {
		Asked int
		Notes []string
	}
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, State: state{Asked: 1, Notes: []string{"first"}}})
		var seen []state
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			var s state
			err := run.Unmarshal(&s)
			seen = append(seen, s)
			if s.Asked == 2 { // not saved: it stays
				return resume.Wait(0), err
			}
			return resume.Wait(0).Save(state{Asked: s.Asked + 1}), err
		})
		r.rest()
		require.NoError(t, r.signal("w1", "s1", ""))
		r.rest()
		require.NoError(t, r.signal("w1", "s2", ""))
		r.rest()
		require.Equal(t, []state{{1, []string{"first"}}, {2, nil}, {2, nil}}, seen)
		require.JSONEq(t, `{"Asked":2,"Notes":null}`, string(r.workflow("w1").State))
	})
}

// Several inputs of one run stand in the order of the thread, not of arrival.
func TestInputsStandInTheThreadsOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		var want []string
		for _, text := range []string{"1", "2", "3"} {
			want = append(want, r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: text}).MessageID)
		}
		page, err := r.mail.Source().Page(t.Context(), r.fed)
		require.NoError(t, err)
		for i := len(page.Events) - 1; i >= 0; i-- { // the doors keep no order
			r.route(page.Events[i])
		}
		r.rest()
		require.Equal(t, want, messages(r.last(1)))
	})
}

// B30: what came before the second question had left does not answer it.
func TestInputSaysWhichMailItCanAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		steps := map[string]int64{}
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			for _, in := range run.Inputs {
				steps[in.Body.Text.Text()+string(in.Data)] = in.Step
			}
			if run.Step == 1 {
				return question(supplier), nil
			}
			return resume.Wait(0), nil
		}, resume.Config{})
		sent := r.ask("w1", supplier)
		reply := func(text string) {
			r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: text})
			r.feed()
		}
		reply("first")
		require.True(t, r.once(resume.JobWork))
		require.Equal(t, int64(2), r.workflow("w1").Step)
		reply("before it left")
		require.NoError(t, r.signal("w1", "s1", "signal before it left"))
		r.rest()
		reply("late")
		r.rest()
		require.Equal(t, map[string]int64{"first": 1, "before it left": 1, "signal before it left": 1, "late": 2}, steps)
	})
}
