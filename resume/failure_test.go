package resume_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// B24
func TestPoisonStepIsForAPersonAndDelaysNobody(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		good := 0
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			if run.ID == "a-poison" {
				return resume.Next{}, errors.New("the model is confused")
			}
			good++
			return resume.Wait(0), nil
		}, resume.Config{Attempts: 4})
		bad := r.ask("a-poison", "bad@example.com")
		fine := r.ask("b-good", supplier)
		in := r.srv.Inbound(efatest.Mail{From: "bad@example.com", ReplyTo: bad.MessageID, Text: "?"})
		for i := range 4 {
			r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: fine.MessageID, Text: "1"})
			r.feed()
			for range 2 { // it, and the failing one, whatever the order
				require.True(t, r.once(resume.JobWork))
			}
			require.Equal(t, i+1, good, "others go on")
			w := r.workflow("a-poison")
			require.Equal(t, int64(i+1), w.Attempts)
			require.Equal(t, "the model is confused", w.Error)
			if i < 3 {
				require.Equal(t, resume.StatusRunnable, w.Status)
				require.GreaterOrEqual(t, w.Due.Sub(w.Updated), time.Second<<i/4, "it backs off")
			}
			r.jump(5 * time.Minute)
		}
		w := r.workflow("a-poison")
		require.Equal(t, resume.StatusNeedsReview, w.Status)
		require.Equal(t, "a person: the model is confused", w.WaitingFor())
		require.Equal(t, int64(1), w.Pending, "the reply is not consumed")

		r.do(listens)
		require.NoError(t, r.eng.RunNow(t.Context(), "a-poison", "ann"))
		r.rest()
		runs := r.runs()
		run := runs[len(runs)-1]
		require.Equal(t, []string{in.MessageID}, messages(run))
		require.Equal(t, int64(1), run.Attempt, "a person starts the count anew")
		require.Equal(t, resume.StatusWaiting, r.status("a-poison"))
		require.Empty(t, r.workflow("a-poison").Error)
	})
}

// A step's own timeouts and lost connections are its failures, too.
func TestStepWhoseCallsTimeOutIsForAPerson(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"deadline": fmt.Errorf("call the model: %w", context.DeadlineExceeded),
		"network":  &net.OpError{Op: "dial", Err: errors.New("connection refused")},
		"bad conn": driver.ErrBadConn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Next{}, cause }, resume.Config{Attempts: 2})
				r.start(resume.Start{ID: "w1", Counterparty: supplier})
				for range 3 {
					r.rest()
					r.jump(time.Hour)
				}
				require.Equal(t, resume.StatusNeedsReview, r.status("w1"))
				r.last(2)
			})
		})
	}
}

func TestPanicIsAnErrorOfTheStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(context.Context, *resume.Run) (resume.Next, error) { panic("a stranger's text") }, resume.Config{Attempts: 2})
		r.start(resume.Start{ID: "w1", Counterparty: supplier})
		r.once(resume.JobWork)
		require.Equal(t, resume.StatusRunnable, r.status("w1"))
		r.jump(5 * time.Minute)
		r.once(resume.JobWork)
		w := r.workflow("w1")
		require.Equal(t, resume.StatusNeedsReview, w.Status)
		require.Contains(t, w.Error, "panicked")
		require.NotContains(t, w.Error, "stranger")
	})
}

func TestZeroNextAndImpossibleNextAreErrors(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{Attempts: 1})
		for id, next := range map[string]resume.Next{
			"nothing": {}, "negative": resume.Wait(-1), "no reason": resume.Review(""), "both": resume.Wait(time.Hour).Done(),
			"no address": resume.Send(client.Outgoing{To: []string{"nobody"}, Subject: "x", Text: "y"}),
			"no JSON":    resume.Wait(0).Save(func() {}),
		} {
			r.do(func(context.Context, *resume.Run) (resume.Next, error) { return next, nil })
			id = "w-" + id[:2] + id[len(id)-2:]
			r.start(resume.Start{ID: id, Counterparty: supplier})
			r.rest()
			w := r.workflow(id)
			require.Equal(t, resume.StatusNeedsReview, w.Status, id)
			require.NotEmpty(t, w.Error, id)
			require.NotContains(t, w.Error, "nobody", "no address in an error")
		}
		require.Empty(t, r.srv.Sends())
	})
}

// B25: the provider refuses the request for good.
func TestRefusedSendIsToldToTheStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			return resume.Send(client.Outgoing{To: []string{run.Counterparty}, Subject: "shorter", Text: "x"}), nil
		}, resume.Config{})
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 422, Code: "recipient_suppressed"})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier).Wait(time.Hour)})
		r.rest()
		run := r.last(1)
		require.Len(t, run.Inputs, 1)
		require.Equal(t, resume.InputSendError, run.Inputs[0].Kind)
		require.Equal(t, "engine", run.Inputs[0].MatchedBy)
		require.Contains(t, run.Inputs[0].Reason, "recipient_suppressed")
		require.False(t, run.TimedOut)
		sends := r.srv.Sends()
		require.Len(t, sends, 1)
		require.Equal(t, "shorter", sends[0].Subject)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.True(t, r.workflow("w1").Deadline.IsZero(), "the first wait is over")
	})
}

// A 4xx without a code of the provider's may be anything in between.
func TestBareRefusalOfAGatewaySettlesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 422, Garbage: "<html>blocked</html>"})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		require.Equal(t, resume.StatusSending, r.status("w1"))
		r.jump(2 * time.Minute)
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Empty(t, r.runs())
	})
}

func TestSendIsRepeatedUntilItHasAnOutcome(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]efatest.Fault{
		"no request":     {Drop: efatest.DropRequest},
		"no answer":      {Drop: efatest.DropAnswer},
		"half an answer": {Drop: efatest.DropMidBody},
		"garbage":        {Garbage: "{}"},
		"503":            {Status: 503},
		"429":            {Status: 429, RetryAfter: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.Op, f.Always = efatest.OpSend, true // net/http may repeat it by itself
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				fault := r.srv.Fault(f)
				r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				for range 2 {
					r.rest()
					require.Equal(t, resume.StatusSending, r.status("w1"))
					require.Equal(t, "the provider to accept its mail", r.workflow("w1").WaitingFor())
					r.jump(11 * time.Minute)
				}
				fault.Disarm()
				r.rest()
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Len(t, r.srv.Sends(), 1, "it left once")
				r.srv.Check(t)
			})
		})
	}
}

// The key was used with another body: nobody can know what left.
func TestConflictingKeyIsForAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 409, Code: "idempotency_conflict"})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		w := r.workflow("w1")
		require.Equal(t, resume.StatusNeedsReview, w.Status)
		require.Contains(t, w.Error, "another body")
		r.jump(24 * time.Hour)
		r.rest()
		require.Equal(t, 1, r.srv.Count(efatest.OpSend), "it is not tried again")
	})
}

// An outcome that nobody can ask for any more is never asked for by sending.
func TestSendBeyondTheReplayWindowIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		fault := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		fault.Disarm()
		requests := r.srv.Count(efatest.OpSend)
		r.jump(29*24*time.Hour + time.Minute)
		r.rest()
		w := r.workflow("w1")
		require.Equal(t, resume.StatusNeedsReview, w.Status)
		require.Contains(t, w.Error, "unknown")
		r.jump(24 * time.Hour)
		r.rest()
		require.Equal(t, requests, r.srv.Count(efatest.OpSend))
		r.srv.Check(t)

		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			require.Empty(t, run.Inputs)
			return resume.Done(), nil
		})
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann")) // the person has found out
		r.rest()
		require.Equal(t, resume.StatusDone, r.status("w1"))
	})
}

// A send that never was attempted is not too old, however long it stood.
func TestSendThatStoodThroughAnOutageIsSent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.jump(40 * 24 * time.Hour)
		r.rest()
		require.Len(t, r.srv.Sends(), 1)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// A credential that is refused settles nothing and is left alone for a while.
func TestRefusedCredentialSettlesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Attempts: 2})
		require.NoError(t, r.eng.Ready(t.Context()))
		fault := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 401, When: efatest.When{Always: true}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.start(resume.Start{ID: "w2", Counterparty: "buyer@example.com", First: question("buyer@example.com")})
		require.True(t, r.once(resume.JobSend))
		require.Equal(t, 1, fault.Hits())
		r.jump(4 * time.Minute)
		r.rest()
		require.Equal(t, 1, fault.Hits(), "one try in five minutes, for all sends together")
		require.ErrorContains(t, r.eng.Ready(t.Context()), "credential")
		require.Equal(t, resume.StatusSending, r.status("w1"))
		require.Equal(t, resume.StatusSending, r.status("w2"))

		fault.Disarm() // the key is mended and the process started again
		e := r.another()
		r.jump(2 * time.Minute)
		for range 2 {
			_, err := e.Once(t.Context(), resume.JobSend)
			require.NoError(t, err)
		}
		require.NoError(t, e.Ready(t.Context()))
		require.Len(t, r.srv.Sends(), 2)
	})
}

func TestQuotaSettlesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Attempts: 2})
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 402, Code: "quota_exceeded", When: efatest.When{Times: 3}})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		for range 3 {
			r.rest()
			require.Equal(t, resume.StatusSending, r.status("w1"))
			r.jump(11 * time.Minute)
		}
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Len(t, r.srv.Sends(), 1)
	})
}

// A step's error and a person's reason may quote mail. What no text of
// Postgres may hold is replaced, and stands in the way of nothing.
func TestTextsThatNoStoreTakes(t *testing.T) {
	t.Parallel()
	const bad, kept = "a\x00b\xff", "a\uFFFDb\uFFFD"
	onBoth(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		r := open(nil, resume.Config{Attempts: 1})
		for id, step := range map[string]resume.Step{
			"fails": func(context.Context, *resume.Run) (resume.Next, error) { return resume.Next{}, errors.New(bad) },
			"asks":  func(context.Context, *resume.Run) (resume.Next, error) { return resume.Review(bad), nil },
		} {
			r.do(step)
			r.start(resume.Start{ID: id, Kind: bad, Counterparty: supplier})
			r.rest()
			w := r.workflow(id)
			require.Equal(t, resume.StatusNeedsReview, w.Status)
			require.Equal(t, kept, w.Error)
			require.Equal(t, kept, w.Kind)
		}
		in := r.srv.Inbound(efatest.Mail{From: supplier, Text: "?"})
		r.rest()
		for _, unknown := range []string{bad, "\x00"} {
			_, err := r.eng.Workflow(ctx, unknown)
			require.ErrorIs(t, err, resume.ErrNotFound)
			require.ErrorIs(t, r.eng.Cancel(ctx, unknown, bad), resume.ErrNotFound)
			require.ErrorIs(t, r.eng.Bind(ctx, unknown, "fails", bad), resume.ErrNotFound)
			require.ErrorIs(t, r.eng.Bind(ctx, in.EventID, unknown, bad), resume.ErrNotFound)
			require.ErrorIs(t, r.signal(unknown, "s", ""), resume.ErrNotFound)
		}
		require.NoError(t, r.eng.Dismiss(ctx, in.EventID, bad, bad))
		require.Equal(t, []string{"dismissed by " + kept + ": " + kept}, decisions(t, r, in.EventID))
		require.ErrorIs(t, r.signal("asks", "\xff", bad), resume.Err)
		require.ErrorIs(t, r.tryStart(resume.Start{ID: "\xff", Counterparty: supplier}), resume.Err)
		require.NoError(t, r.signal("asks", "s", bad))
		require.NoError(t, r.eng.Cancel(ctx, "asks", bad))
	})
}
