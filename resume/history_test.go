package resume_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// timed is mail of a provider that says when each message was sent.
type timed struct {
	resume.Mail
	srv *efatest.Server
}

func (m timed) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	return func(yield func(client.Message, error) bool) {
		all, begin := m.srv.Messages(""), time.Now()
		for msg, err := range m.Mail.Messages(ctx, inbox, thread) {
			i := slices.IndexFunc(all, func(a efatest.Message) bool { return a.ID == msg.ID })
			msg.At = begin.Add(time.Duration(i) * time.Second)
			if !yield(msg, err) {
				return
			}
		}
	}
}

// talk is a conversation over two threads; it returns what the last run's
// history held, and what it should have.
func talk(t *testing.T, r *rig) (history, bodies, want []string) {
	t.Helper()
	r.do(func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		all, err := run.History(ctx)
		if err != nil {
			return resume.Next{}, err
		}
		history, bodies = nil, nil
		for _, m := range all {
			body, err := run.Body(ctx, m)
			if err != nil {
				return resume.Next{}, err
			}
			history, bodies = append(history, m.ID), append(bodies, body.Text.Text())
		}
		return resume.Wait(0), nil
	})
	sent := r.ask("w1", supplier)
	want = append(want, sent.MessageID)
	for _, m := range []efatest.Mail{{Text: "a", ReplyTo: sent.MessageID}, {Text: "b"}, {Text: "c", ReplyTo: sent.MessageID}} {
		r.jump(time.Minute)
		m.From = supplier
		want = append(want, r.srv.Inbound(m).MessageID)
		r.rest()
	}
	return history, bodies, want
}

// Two threads are one conversation.
func TestHistoryMergesThreadsByTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ opener) {
		r := bareRig(t, storeOf(t), nil)
		r.wrap = func(m resume.Mail) resume.Mail { return timed{m, r.srv} }
		r.open(resume.Config{})
		history, bodies, want := talk(t, r)
		require.Equal(t, want, history)
		require.Equal(t, []string{"please quote", "a", "b", "c"}, bodies)
	})
}

// Email for Agents documents no time in its listings; what the engine knows is
// when each message arrived.
func TestHistoryWithoutTimesFollowsArrival(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		history, _, want := talk(t, open(nil, resume.Config{}))
		require.Equal(t, want, history)
	})
}

func TestSeenIsInTheOrderOfTheRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		_, _, want := talk(t, r)
		pending := r.srv.Inbound(efatest.Mail{From: supplier, Thread: r.srv.Sends()[0].ThreadID, Text: "not shown yet"})
		r.feed()
		seen, err := r.eng.Seen(t.Context(), "w1")
		require.NoError(t, err)
		require.Equal(t, append(want[1:], pending.MessageID), seen)
		_, err = r.eng.Seen(t.Context(), "w2")
		require.ErrorIs(t, err, resume.ErrNotFound)
	})
}
