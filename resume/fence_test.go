package resume_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// another is a second process on the rig's store. Its step is the rig's.
func (r *rig) another() *resume.Engine {
	r.t.Helper()
	_, _, e, _ := r.engine(r.mail, r.cfg)
	return e
}

// background does one piece of a job in a goroutine.
func background(e *resume.Engine, job resume.Job) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := e.Once(context.Background(), job)
		over <- err
	}()
	return over
}

// B19: the step of a worker that was thought dead ends after all.
func TestWorkerThatLostItsLeaseCommitsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()

		working, wake := make(chan struct{}), make(chan struct{})
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			close(working)
			<-wake
			return answer(run, "from the slow one").Save("slow"), nil
		})
		slow := background(r.eng, resume.JobWork)
		<-working
		require.False(t, r.once(resume.JobWork), "nobody else takes it while the lease lasts")

		r.jump(31 * time.Second)
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			return answer(run, "from the quick one").Save("quick"), nil
		})
		did, err := r.another().Once(t.Context(), resume.JobWork)
		require.NoError(t, err)
		require.True(t, did)
		close(wake)
		require.NoError(t, <-slow)
		r.rest()

		runs := r.runs()
		require.Len(t, runs, 2)
		require.Equal(t, []string{in.MessageID}, messages(runs[1]))
		require.Equal(t, int64(2), runs[1].Attempt, "a lost lease is an attempt")
		sends := r.srv.Sends()
		require.Len(t, sends, 2)
		require.Equal(t, "from the quick one", sends[1].Text)
		w := r.workflow("w1")
		require.Equal(t, int64(2), w.Step)
		require.JSONEq(t, `"quick"`, string(w.State))
		require.Equal(t, resume.StatusWaiting, w.Status)
		r.srv.Check(t)
	})
}

// The slow one comes first to its commit, but no longer holds the lease.
func TestWorkerWhoseWorkflowWasTakenOverLosesEvenFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "s", ""))
		type gate struct{ in, out chan struct{} }
		block := func(note string) gate {
			g := gate{make(chan struct{}), make(chan struct{})}
			r.do(func(context.Context, *resume.Run) (resume.Next, error) {
				close(g.in)
				<-g.out
				return resume.Done().Save(note), nil
			})
			return g
		}
		first := block("first")
		slow := background(r.eng, resume.JobWork)
		<-first.in
		r.jump(31 * time.Second)
		second := block("second")
		quick := background(r.another(), resume.JobWork)
		<-second.in
		close(first.out)
		require.NoError(t, <-slow)
		require.Equal(t, resume.StatusRunning, r.status("w1"))
		close(second.out)
		require.NoError(t, <-quick)
		require.JSONEq(t, `"second"`, string(r.workflow("w1").State))
		require.Equal(t, resume.StatusDone, r.status("w1"))
	})
}

// B20, B21: a sender stalls after the provider accepted; by the time it wakes,
// the workflow has planned its next mail.
func TestStaleSenderChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{})
		stalled, wake := make(chan struct{}), make(chan struct{})
		stall := true
		r.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
			if op == efatest.OpSend && at == efatest.BeforeEffect && stall {
				stall = false
				close(stalled)
				<-wake
			}
		})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		slow := background(r.eng, resume.JobSend)
		<-stalled

		r.jump(61 * time.Second)
		require.True(t, r.once(resume.JobSend), "the same key by another sender")
		sent := r.srv.Sends()[0]
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) { return answer(run, "second"), nil })
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		require.True(t, r.once(resume.JobWork))
		require.Equal(t, resume.StatusSending, r.status("w1"))

		close(wake)
		require.NoError(t, <-slow)
		require.Equal(t, resume.StatusSending, r.status("w1"), "step 2 has no outcome yet")
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		sends := r.srv.Sends()
		require.Len(t, sends, 2)
		require.Equal(t, 1, sends[0].Replays)
		require.Equal(t, "second", sends[1].Text)
		r.srv.Check(t)
	})
}

// A process that stops gives back what it holds, at once.
func TestShutdownGivesLeasesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Drain: time.Millisecond, Lease: time.Hour})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "s", ""))
		working := make(chan struct{})
		var cause error
		r.do(func(ctx context.Context, _ *resume.Run) (resume.Next, error) {
			close(working)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return resume.Next{}, ctx.Err()
		})
		stop := r.run()
		<-working
		stop()
		require.ErrorIs(t, cause, resume.ErrStopped)
		w := r.workflow("w1")
		require.Equal(t, resume.StatusRunnable, w.Status)
		require.Zero(t, w.Attempts, "a stop is nobody's failure")

		r.do(listens)
		did, err := r.another().Once(t.Context(), resume.JobWork)
		require.NoError(t, err)
		require.True(t, did, "the next process has it within the hour's lease")
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// A step that is nearly done may end within Drain.
func TestShutdownLetsARunningStepEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Drain: time.Minute})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "s", ""))
		working, end := make(chan struct{}), make(chan struct{})
		r.do(func(ctx context.Context, _ *resume.Run) (resume.Next, error) {
			close(working)
			<-end
			return resume.Done(), ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- r.eng.Run(ctx) }()
		<-working
		cancel()
		close(end)
		require.NoError(t, <-over)
		require.Equal(t, resume.StatusDone, r.status("w1"))
	})
}

// A long step keeps its lease by heartbeats.
func TestHeartbeatKeepsALongStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Lease: 8 * time.Second})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "s", ""))
		working, end := make(chan struct{}), make(chan struct{})
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			close(working)
			<-end
			return resume.Done(), nil
		})
		r.run()
		<-working
		began := r.workflow("w1").Due
		r.until("the lease is extended twice over", func() bool { return r.workflow("w1").Due.After(began.Add(time.Second)) })
		require.Len(t, r.runs(), 1)
		close(end)
		r.until("done", func() bool { return r.status("w1") == resume.StatusDone })
		require.Len(t, r.runs(), 1)
	})
}

// A worker whose workflow another has taken is told so.
func TestLostLeaseStopsTheStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Lease: 8 * time.Second})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "s", ""))
		working, told := make(chan struct{}), make(chan error, 1)
		r.do(func(ctx context.Context, _ *resume.Run) (resume.Next, error) {
			r.do(listens)
			close(working)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return resume.Next{}, errors.New("stopped")
		})
		r.run()
		<-working
		r.exec("update {s}workflows set gen = gen + 1 where status = 'running'") // as a claim does
		require.ErrorIs(t, <-told, resume.ErrLeaseLost)
		require.Zero(t, r.workflow("w1").Attempts)
	})
}

// mortal is Mail whose reader may die.
type mortal struct {
	resume.Mail
	dies atomic.Bool
}

func (m *mortal) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	if m.dies.Load() {
		runtime.Goexit()
	}
	return m.Mail.Messages(ctx, inbox, thread)
}

// dies lets a worker run that does not come to its end, and its lease run out.
func (r *rig) dies() {
	var worker sync.WaitGroup
	worker.Go(func() { _, _ = r.eng.Once(context.Background(), resume.JobWork) })
	worker.Wait()
	require.Equal(r.t, resume.StatusRunning, r.status("w1"))
	r.jump(time.Minute)
}

// A step that kills its worker every time is for a person. Of a process that is
// killed every time before it comes to the step, no step is to blame.
func TestWhoeverKillsTheProcessIsNotTheStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ opener) {
		r := bareRig(t, storeOf(t), listens)
		mail := &mortal{}
		r.wrap = func(m resume.Mail) resume.Mail {
			mail.Mail = m
			return mail
		}
		r.open(resume.Config{Attempts: 3})
		sent := r.ask("w1", supplier)
		r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.feed()
		mail.dies.Store(true)
		for range 5 {
			r.dies()
		}
		mail.dies.Store(false)
		r.do(func(context.Context, *resume.Run) (resume.Next, error) {
			runtime.Goexit()
			return resume.Done(), nil
		})
		for range 2 {
			r.dies()
		}
		r.rest()
		require.Equal(t, resume.StatusNeedsReview, r.status("w1"))
		require.Contains(t, r.workflow("w1").Error, "lease")
		require.Equal(t, int64(1), r.workflow("w1").Pending, "its input is still there")

		r.do(listens)
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Zero(t, r.workflow("w1").Pending)
	})
}
