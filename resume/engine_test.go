package resume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// acks acknowledges every reply in one send and is done after n of them.
func acks(n int) resume.Step {
	type acked struct{ N int }
	return func(_ context.Context, run *resume.Run) (resume.Next, error) {
		var s acked
		if err := run.Unmarshal(&s); err != nil {
			return resume.Next{}, err
		}
		ids := messages(*run)
		if len(ids) == 0 {
			return resume.Wait(0), nil
		}
		s.N += len(ids)
		next := resume.Send(client.Outgoing{
			To: []string{run.Counterparty}, Subject: "ack", Text: "ack: " + strings.Join(ids, ","), ReplyTo: ids[len(ids)-1],
		}).Save(s)
		if s.N >= n {
			next = next.Done()
		}
		return next, nil
	}
}

// acked is how often each message was acknowledged.
func acked(srv *efatest.Server) map[string]int {
	out := map[string]int{}
	for _, s := range srv.Sends() {
		if list, ok := strings.CutPrefix(s.Text, "ack: "); ok {
			for id := range strings.SplitSeq(list, ",") {
				out[id]++
			}
		}
	}
	return out
}

// impatient makes what waits in real time short.
func impatient() resume.Config {
	return resume.Config{SendRetryAfter: 200 * time.Millisecond, Hold: 50 * time.Millisecond}
}

func TestReplyWakesWorkflow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(acks(2), impatient())
		r.run()
		r.start(resume.Start{ID: "w1", Counterparty: "Supplier@Example.com", First: question(supplier)})
		r.until("sent", func() bool { return len(r.srv.Sends()) == 1 })
		thread := r.srv.Sends()[0].ThreadID
		in := r.srv.Inbound(efatest.Mail{From: supplier, Thread: thread, Text: "100 EUR"})
		r.until("acknowledged", func() bool { return len(r.srv.Sends()) == 2 })
		in2 := r.srv.Inbound(efatest.Mail{From: supplier, Text: "90 EUR, on a new thread"})
		r.until("done", func() bool { return r.status("w1") == resume.StatusDone })
		require.Len(t, r.srv.Sends(), 3)
		seen, err := r.eng.Seen(t.Context(), "w1")
		require.NoError(t, err)
		require.Equal(t, []string{in.MessageID, in2.MessageID}, seen)
		r.srv.Check(t)
		late := r.srv.Inbound(efatest.Mail{From: supplier, Thread: thread, Text: "hello?"})
		r.until("late reply queued", func() bool {
			items := r.queue()
			return len(items) == 1 && items[0].Message == late.MessageID && items[0].Reason == resume.ReasonLateReply
		})
	})
}

func TestManyWorkflows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(acks(2), impatient())
		stop := r.run()
		const n = 4
		for i := range n {
			to := fmt.Sprintf("c%d@example.com", i)
			r.start(resume.Start{ID: fmt.Sprintf("w%02d", i), Counterparty: to, First: question(to)})
		}
		replied := map[string]bool{}
		r.until("all done", func() bool {
			for _, s := range r.srv.Sends() {
				if s.Subject == "Quote request" && !replied[s.MessageID] {
					replied[s.MessageID] = true
					r.srv.Inbound(efatest.Mail{From: s.To[0], Thread: s.ThreadID, Text: "first"})
					r.srv.Inbound(efatest.Mail{From: s.To[0], Text: "new thread"})
				}
			}
			ws, err := r.eng.Workflows(context.Background(), resume.StatusDone, "", 0)
			require.NoError(t, err)
			return len(ws) == n
		})
		stop()
		r.srv.Check(t)
		require.Len(t, acked(r.srv), 2*n)
		for id, times := range acked(r.srv) {
			require.Equal(t, 1, times, id)
		}
	})
}
