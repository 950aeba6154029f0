package resumetest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

// B24 to B35: what fails for good, what is kept, and what it costs.

// A step that always fails delays no other, and a person is asked in the end.
func TestB24PoisonStep(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "poison-step", Config: resume.Config{Attempts: 4},
		Step: func(ctx context.Context, run *resume.Run) (resume.Next, error) {
			if run.ID == "a-bad" {
				return resume.Next{}, errors.New("no such luck")
			}
			return ends(ctx, run)
		},
		Setup: do(ask("a-bad"), ask("b-good")),
		Actors: []actor{{"all", do(
			reply("a-bad", "1"), work, reply("b-good", "2"), work,
			status("b-good", resume.StatusDone), status("a-bad", resume.StatusRunnable),
		)}},
		Check: status("a-bad", resume.StatusNeedsReview),
	})
}

// Sends that can never succeed: the step is told, or a person, and others go on.
func TestB25PermanentSendErrors(t *testing.T) {
	t.Parallel()
	refuse := func(status int, code string) func(*world) error {
		return func(w *world) error {
			w.Provider().Fault(efatest.Fault{Op: efatest.OpSend, Status: status, Code: code, Match: func(r *http.Request) bool {
				return r.Header.Get("Idempotency-Key") != ""
			}})
			return nil
		}
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		play(t, scenario{
			Name: "refused",
			Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
				if len(run.Inputs) == 1 && run.Inputs[0].Kind == resume.InputSendError {
					return resume.Done(), nil
				}
				return resume.Wait(0), nil
			},
			Setup:  do(refuse(http.StatusUnprocessableEntity, "invalid_request"), start(question("w1")), start(question("w2"))),
			Actors: []actor{{"sender", do(send, send)}},
			Check:  do(status("w1", resume.StatusDone), status("w2", resume.StatusWaiting), sent(1)),
		})
	})
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		play(t, scenario{
			Name: "conflict", Step: waits,
			Setup:  do(refuse(http.StatusConflict, "idempotency_conflict"), start(question("w1")), start(question("w2"))),
			Actors: []actor{{"sender", do(send, send)}},
			Check:  do(status("w1", resume.StatusNeedsReview), status("w2", resume.StatusWaiting), sent(1)),
		})
	})
	t.Run("too-old", func(t *testing.T) {
		t.Parallel()
		play(t, scenario{
			Name: "too-old", Step: waits,
			Setup: do(func(w *world) error {
				w.Provider().Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer})
				return w.Start(question("w1"))
			}, send),
			Actors: []actor{{"sender", do(jump(31*24*time.Hour), send)}},
			Check:  do(status("w1", resume.StatusNeedsReview), sent(1)),
		})
	})
}

// What a replay brings again after its ID was forgotten wakes nobody: not by
// push, not under another ID, not by a sweep of all that the provider has.
func TestB28ForgottenIDs(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "forgotten-ids", Step: acks,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle),
		Actors: []actor{{"replay", do(
			jump(40*24*time.Hour), sweep, // which settles the position behind them
			func(w *world) error { return w.Inbox().Maintain(w.Context()) }, known(0),
			func(w *world) error {
				for _, e := range w.Provider().Events() {
					if err := w.Push(e.ID); err != nil {
						return err
					}
				}
				return nil
			},
			func(w *world) error {
				ev, err := w.Event(received(w, 0))
				ev.ID = "evt_of_another_endpoint"
				return errors.Join(err, w.PushEvent(ev))
			},
			func(w *world) error {
				w.Provider().Expire(1)
				return w.SweepFrom(0)
			},
		)}},
		Check: do(sent(2), acked, queue(0, "")),
	})
}

// known wants so many event IDs to be kept.
func known(n int64) func(*world) error {
	return func(w *world) error {
		s, err := w.Inbox().Status(w.Context())
		if err == nil && s.Seen != n {
			err = fmt.Errorf("%d event IDs are kept, want %d", s.Seen, n)
		}
		return err
	}
}

// Pushes that are lost for good: the sweep brings what they would have, also
// when what it stood at has expired.
func TestB29LostPushes(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "lost-pushes", Step: acks,
		Setup: ask("w1"),
		Actors: []actor{{"nobody", func(w *world) error {
			w.Provider().Emit(efatest.Event{Type: efatest.WebhookTest})
			w.Provider().Expire(w.Provider().Head()) // beyond where the sweep stands
			_, err := w.Reply("w1", "100 EUR")
			return err
		}}},
		Check: do(status("w1", resume.StatusWaiting), acked, func(w *world) error {
			s, err := w.Inbox().Status(w.Context())
			if err == nil && s.Lost.Cursor == 0 {
				err = errors.New("the cursor had not expired")
			}
			return err
		}),
	})
}

// A delivery that is answered with a 4xx is over: what a receiver with an old
// secret refuses comes by the sweep. With FailStatus 503 it is tried again.
func TestB29RefusedPushes(t *testing.T) {
	t.Parallel()
	for status, state := range map[int]string{http.StatusBadRequest: efatest.StateExhausted, http.StatusServiceUnavailable: efatest.StatePending} {
		play(t, scenario{
			Name: "refused-pushes-" + strconv.Itoa(status), Step: acks,
			Setup:  ask("w1"),
			Actors: []actor{{"webhook", refused(status, state)}},
			Check:  do(acked, sent(2)),
		})
	}
}

// refused is a reply whose push meets a receiver that has another secret.
func refused(answer int, state string) func(*world) error {
	return func(w *world) error {
		old := verify.RawSecret(strings.Repeat("old", 12))
		verifier, err := verify.New(verify.Config{Secrets: []verify.Secret{old}, FailStatus: answer, Now: w.Provider().Now})
		if err != nil {
			return err
		}
		handler, err := events.NewHandler(verifier, efa.Profile, w.Inbox(), events.HandlerConfig{})
		if err != nil {
			return err
		}
		receiver := httptest.NewServer(handler)
		defer receiver.Close()
		hook := w.Provider().Webhook(receiver.URL, efatest.MessageReceived)
		defer w.Provider().Disable(hook.ID)
		if _, err := w.Reply("w1", "100 EUR"); err != nil {
			return err
		}
		w.Provider().Deliver(w.Context())
		deliveries := w.Provider().Deliveries()
		if len(deliveries) != 1 || deliveries[0].State != state || handler.Counts().Fresh != 0 {
			return fmt.Errorf("the push stands at %+v, want it %s", deliveries, state)
		}
		return nil
	}
}

// A reply that came before the second question left does not answer it.
func TestB30ReplyToAnEarlierStep(t *testing.T) {
	t.Parallel()
	unheard := func(id, text string) func(*world) error {
		return func(w *world) error { _, err := w.Reply(id, text); return err }
	}
	for name, early := range map[string]func(*world) error{
		"before it was planned":   do(reply("w1", "early"), work, send, settle),
		"before it left":          do(work, reply("w1", "early"), send, settle),
		"before it left, by pull": do(work, unheard("w1", "early"), sweep, send, settle),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, scenario{
				Name: "reply-to-an-earlier-step", Step: knowsItsStep, Config: resume.Config{Attempts: 1},
				Setup:  do(ask("w1"), reply("w1", "first")),
				Actors: []actor{{"replies", do(early, reply("w1", "late"))}},
				Check:  do(status("w1", resume.StatusWaiting), acked),
			})
		})
	}
}

// knowsItsStep fails if a reply stands at the wrong step.
func knowsItsStep(ctx context.Context, run *resume.Run) (resume.Next, error) {
	want := map[string]int64{"first": 1, "early": 1, "late": run.Step}
	for _, in := range run.Replies() {
		if text := in.Body.Text.Text(); in.Step != want[text] {
			return resume.Next{}, fmt.Errorf("%q stands at step %d of %d", text, in.Step, run.Step)
		}
	}
	return acks(ctx, run)
}

// Inputs come in the order of their thread, however they arrive.
func TestB31Order(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "order",
		Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
			var got []string
			for _, in := range run.Replies() {
				got = append(got, in.Body.Text.Text())
			}
			if strings.Join(got, " ") != "one two three" {
				return resume.Review("out of order: " + strings.Join(got, " ")), nil
			}
			return resume.Done(), nil
		},
		Setup: ask("w1"),
		Actors: []actor{{"door", func(w *world) error {
			var ids []string
			for _, text := range []string{"one", "two", "three"} {
				in, err := w.Reply("w1", text)
				if err != nil {
					return err
				}
				ids = append(ids, in.EventID)
			}
			return errors.Join(w.Push(ids[2]), w.Push(ids[0]), w.Push(ids[1]))
		}}},
		Check: status("w1", resume.StatusDone),
	})
}

// The bytes of a send are what was sealed, whatever stands in them.
func TestB32ExactBytes(t *testing.T) {
	t.Parallel()
	mail := mailTo(supplier, "ü <&> \u2029 \\u0000")
	mail.Subject = "ü <&> \\u0000 9007199254740993"
	mail.Text = "NUL \x00, 9007199254740993, <b>&amp;</b>\u2028"
	explore(t, scenario{
		Name: "exact-bytes", Step: waits,
		Setup:  start(resume.Start{ID: "w1", Counterparty: supplier, State: "NUL \x00", First: resume.Send(mail)}),
		Actors: []actor{{"sender", send}, {"other sender", do(jump(2*time.Minute), send)}},
		Check:  do(status("w1", resume.StatusWaiting), sent(1)),
	})
}

// An ID is used again while what its first life sent is still under way.
func TestB33IDUsedAgain(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "id-used-again", Step: acks,
		Setup: start(question("w1")),
		Actors: []actor{{"sender", send}, {"ann", do(
			func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") },
			start(question("w1")), send,
		)}, {"reply", replyOnceSent("w1", "100 EUR")}},
		Check: do(askedAnew, either(
			do(acked, queue(0, "")),
			do(unanswered, places("queue"), queue(1, resume.ReasonLateReply)), // to the first life
		)),
	})
}

// What is polled for has an index of its own that idle rows are not in.
func TestB34PollsAreIndexed(t *testing.T) {
	t.Parallel()
	script, err := resume.SQL("x")
	require.NoError(t, err)
	for _, index := range []string{
		`workflows (engine, due) where due is not null`, `sends (engine, due) where due is not null`, `mail (engine, due) where place = 'unplaced'`,
		`mail (engine, workflow) where place = 'input' and consumed_by is null`, `threads (engine, workflow`,
	} {
		require.Contains(t, strings.ReplaceAll(script, `"x".`, ""), index)
	}
}

// A deploy: a step that is at work is given back at once.
func TestB35CleanShutdown(t *testing.T) {
	t.Parallel()
	var began sync.Map // by workflow
	play(t, scenario{
		Name: "clean-shutdown", Config: resume.Config{Drain: time.Millisecond, Lease: time.Hour},
		Step: func(ctx context.Context, run *resume.Run) (resume.Next, error) {
			if first, ok := began.LoadAndDelete(run.ID); ok {
				close(first.(chan struct{}))
				<-ctx.Done()
				return resume.Next{}, context.Cause(ctx)
			}
			return resume.Done(), nil
		},
		Actors: []actor{{"deploy", func(w *world) error {
			id, first := rand.Text(), make(chan struct{})
			began.Store(id, first)
			if err := w.Start(resume.Start{ID: id, Counterparty: supplier}); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(w.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Engine().Run(ctx) }()
			<-first
			stop()
			if err := <-ended; err != nil {
				return err
			}
			return do(status(id, resume.StatusRunnable), work, status(id, resume.StatusDone))(w)
		}}},
	})
}

// A reply arrives as the deadline fires: one of them wins, and the reply if it
// came first.
func TestDeadlineAgainstReply(t *testing.T) {
	t.Parallel()
	q := question("w1")
	q.First = q.First.Wait(24 * time.Hour)
	explore(t, scenario{
		Name: "deadline-against-reply", Step: reminds,
		Setup:  do(start(q), settle, jump(25*time.Hour), sweep),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "100 EUR")}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// A delivery fails before we know that the message was ours.
func TestBounceAgainstSender(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "bounce-against-sender",
		Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
			for _, in := range run.Inputs {
				if in.Kind == resume.InputBounce {
					return resume.Review("bounced"), nil
				}
			}
			return resume.Wait(0), nil
		},
		Setup: func(w *world) error {
			w.Provider().OnSend(func(s efatest.Send) { w.Provider().DeliveryUpdate(s.MessageID, "bounced") })
			return w.Start(question("w1"))
		},
		Actors: []actor{{"sender", send}, {"door", sweep}, {"matcher", match}},
		Check:  status("w1", resume.StatusNeedsReview),
	})
}
