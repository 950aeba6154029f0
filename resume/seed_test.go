package resume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

// The six checks that the article on resuming gives for a test project.

// simulate is POST test/inbound: it takes no headers and opens a new thread.
func (r *rig) simulate(from string) {
	r.t.Helper()
	body, err := json.Marshal(map[string]string{"inbox_id": r.srv.Inbox(), "from": from, "subject": "Re: Quote request", "text": "100 EUR"})
	require.NoError(r.t, err)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.srv.URL()+"/projects/"+r.srv.Project()+"/test/inbound", bytes.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.srv.Key())
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.srv.Client().Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	require.Equal(r.t, http.StatusAccepted, resp.StatusCode)
}

// matchedBy is who bound a thread.
func (r *rig) matchedBy(thread, how string) int {
	return r.count("select count(*) from {s}threads where workflow = 'w1' and thread = '" + thread + "' and matched_by = '" + how + "'")
}

// 1. Create a workflow, send step 1 from a test inbox, and confirm a thread row
// with matched_by = 'send'.
func TestSeedCheck1SendBindsTheThread(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		require.Equal(t, 1, r.matchedBy(sent.ThreadID, "send"))
		require.True(t, r.happened("w1", "thread", sent.ThreadID+" by send"))
	})
}

// killed is mail of a process that dies after the POST has returned.
type killed struct {
	resume.Mail
	returned, buried chan struct{}
}

func (k killed) Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error) {
	out, err := k.Mail.Send(ctx, key, s)
	close(k.returned)
	<-k.buried // nothing of this process happens any more
	return out, err
}

// 2. Kill the process after the POST returns and before the commit. Run the
// sweep and confirm the replayed response writes the same thread ID.
func TestSeedCheck2ReplayAfterACrashBindsTheSameThread(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		k := killed{r.mail, make(chan struct{}), make(chan struct{})}
		_, _, dying, _ := r.engine(k, r.cfg)
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		dead := background(dying, resume.JobSend)
		<-k.returned
		require.Equal(t, resume.StatusSending, r.status("w1"))
		thread := r.srv.Sends()[0].ThreadID

		r.jump(2 * time.Minute)
		r.rest()
		require.Equal(t, 1, r.matchedBy(thread, "send"))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Len(t, r.srv.Sends(), 1)
		require.Equal(t, 1, r.srv.Sends()[0].Replays)

		close(k.buried) // and if it was not dead after all, it changes nothing
		require.NoError(t, <-dead)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		r.srv.Check(t)
	})
}

// 3. Simulate an inbound from the counterparty's address. It arrives on a new
// thread and is bound with matched_by = 'sender'.
func TestSeedCheck3SenderFallback(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		sent := r.ask("w1", supplier)
		r.simulate(supplier)
		r.rest()
		in := r.last(1).Inputs[0]
		require.NotEqual(t, sent.ThreadID, in.Message.Thread)
		require.Equal(t, "sender", in.MatchedBy)
		require.Equal(t, 1, r.matchedBy(in.Message.Thread, "sender"))
	})
}

// 4. Replay the same webhook body with the same webhook-id. Assert 204 and no
// second input.
func TestSeedCheck4ReplayedWebhook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{}, efatest.Config{Manual: true})
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(r.srv.Secret())}})
		require.NoError(t, err)
		h, err := events.NewHandler(v, efa.Profile, r.inbox, events.HandlerConfig{})
		require.NoError(t, err)
		r.srv.WebhookHandler(h, efatest.MessageReceived)
		sent := r.ask("w1", supplier)
		r.skip()
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		for range 2 {
			require.Positive(t, r.srv.Drain(t.Context()))
			r.fed = events.Cursor(in.Sequence)
			r.rest()
			require.Equal(t, []string{in.MessageID}, messages(r.last(1)))
			r.srv.Redeliver(in.EventID)
		}
		for _, d := range r.srv.Deliveries() {
			for _, a := range d.Attempts {
				require.Equal(t, http.StatusNoContent, a.Status)
			}
		}
		require.Equal(t, 1, r.count("select count(*) from {s}mail where kind = 'received'"))
	})
}

// 5. Simulate two messages from the counterparty a second apart and assert one
// run that sees both, or two runs in sequence, never two in parallel.
func TestSeedCheck5TwoMessagesASecondApart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		var now, most atomic.Int32
		var mu sync.Mutex
		var seen []string
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, messages(*run)...)
			return answer(run, "noted"), nil
		}, impatient())
		r.ask("w1", supplier)
		r.run()
		r.runEngine(r.another())
		r.simulate(supplier)
		r.srv.Advance(time.Second)
		r.simulate(supplier)
		r.until("both are answered", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) == 2 && r.status("w1") == resume.StatusWaiting
		})
		require.Equal(t, int32(1), most.Load())
		require.NotEqual(t, seen[0], seen[1])
	})
}

// 6. Simulate one from an unknown sender and assert it stays unmatched.
func TestSeedCheck6UnknownSender(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		r.simulate("stranger@example.net")
		r.rest()
		r.jump(day)
		r.rest()
		require.Empty(t, r.runs())
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		it := r.queued()
		require.Equal(t, resume.ReasonNoCandidate, it.Reason)
		require.Empty(t, it.Candidates)
		require.Zero(t, r.matchedBy(it.Thread, "sender"))
	})
}
