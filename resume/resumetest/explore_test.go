package resumetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

func explore(t *testing.T, s scenario) {
	t.Helper()
	t.Parallel()
	resumetest.Explore(t, s, options(t))
}

// B1, B3, B4: a correction arrives while the agent answers.
func TestCorrectionWhileAnswering(t *testing.T) {
	explore(t, scenario{
		Name: "correction-while-answering", Step: acks,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"correction", reply("w1", "sorry, 90 EUR")}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// B2, B7, B8: the answer is there before we know that the question left.
func TestReplyWhileSending(t *testing.T) {
	explore(t, scenario{
		Name: "reply-while-sending", Step: acks,
		Setup:  start(question("w1")),
		Actors: []actor{{"sender", send}, {"reply", replyOnceSent("w1", "100 EUR")}, {"matcher", match}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// B8 and B6: a mail that could not be placed, and the send that makes its
// thread known.
func TestMatcherAgainstSender(t *testing.T) {
	explore(t, scenario{
		Name: "matcher-against-sender", Step: acks,
		Setup: func(w *world) error {
			w.Provider().OnSend(func(s efatest.Send) { // answered at once
				if s.Subject != "ack" {
					w.Provider().Inbound(efatest.Mail{From: supplier, ReplyTo: s.MessageID, Text: "100 EUR"})
				}
			})
			return w.Start(question("w1"))
		},
		Actors: []actor{{"sender", send}, {"door", do(sweep, match)}, {"matcher", match}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// B9: two mails on a new thread; the second comes when the first is bound.
func TestTwoMailsOnANewThread(t *testing.T) {
	explore(t, scenario{
		Name: "two-mails-on-a-new-thread", Step: acks,
		Setup: func(w *world) error {
			if err := ask("w1")(w); err != nil {
				return err
			}
			first := w.Inbound(efatest.Mail{From: supplier, Text: "one"})
			second := w.Inbound(efatest.Mail{From: supplier, Text: "two", Thread: first.ThreadID})
			return errors.Join(w.Push(first.EventID), w.Push(second.EventID))
		},
		Actors: []actor{{"matcher", match}, {"other matcher", match}, {"worker", work}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// B10: a second workflow for the same supplier begins while mail on a new
// thread is matched by its sender.
func TestStartAgainstSenderRule(t *testing.T) {
	explore(t, scenario{
		Name: "start-against-sender-rule", Step: acks,
		Setup:  do(ask("w1"), fresh(supplier, "about which?")),
		Actors: []actor{{"matcher", match}, {"starter", do(start(question("w2")), send)}},
	})
}

// B10: the other workflow of that supplier is busy with a reply of its own.
func TestBusyWorkflowIsACandidate(t *testing.T) {
	explore(t, scenario{
		Name: "busy-workflow-is-a-candidate", Step: acks,
		Setup:  do(ask("w1"), ask("w2"), reply("w2", "for two")),
		Actors: []actor{{"worker", work}, {"mail", do(fresh(supplier, "about which?"), match)}},
		Check:  queue(1, resume.ReasonSeveralCandidates),
	})
}

// B12: the workflow ends while a reply arrives.
func TestDoneAgainstReply(t *testing.T) {
	explore(t, scenario{
		Name: "done-against-reply", Step: ends,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "and one more thing")}},
		Check:  status("w1", resume.StatusDone),
	})
}

// B6: mail is matched by its sender while that workflow ends.
func TestDoneAgainstMatcher(t *testing.T) {
	explore(t, scenario{
		Name: "done-against-matcher", Step: ends,
		Setup:  do(ask("w1"), reply("w1", "100 EUR"), fresh(supplier, "and one more thing")),
		Actors: []actor{{"worker", work}, {"matcher", match}},
		Check:  status("w1", resume.StatusDone),
	})
}

// B19: the lease runs out under a worker that is still at it.
func TestLeaseRunsOut(t *testing.T) {
	explore(t, scenario{
		Name: "lease-runs-out", Step: acks,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"other worker", do(jump(time.Minute), work)}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// B20, B21, B23: a sender stalls after the provider took its mail, and all
// goes on without it.
func TestSenderStalls(t *testing.T) {
	explore(t, scenario{
		Name: "sender-stalls", Step: acks,
		Setup: start(question("w1")),
		Actors: []actor{
			{"sender", send},
			{"others", do(jump(2*time.Minute), send, replyOnceSent("w1", "100 EUR"), work)},
		},
		Check: do(status("w1", resume.StatusWaiting), acked),
	})
}

// B26, B27: what a person at the provider decides about a held send, against
// the answer that says it is held.
func TestHeldSend(t *testing.T) {
	for name, decide := range map[string]func(w *world, approval string) error{
		"approved": func(w *world, approval string) error { _, err := w.Provider().Approve(approval); return err },
		"rejected": func(w *world, approval string) error { return w.Provider().Reject(approval) },
	} {
		t.Run(name, func(t *testing.T) {
			explore(t, scenario{
				Name: "held-send-" + name, Step: acks,
				Setup: func(w *world) error {
					w.Provider().HoldSends(func(s efatest.Send) bool { return s.Subject != "ack" })
					return w.Start(question("w1"))
				},
				Actors: []actor{{"sender", send}, {"person", func(w *world) error {
					for _, s := range w.Provider().Sends() {
						if s.ApprovalID != "" && s.MessageID == "" && !s.Rejected {
							if err := decide(w, s.ApprovalID); err != nil {
								return err
							}
						}
					}
					return w.Sweep()
				}}, {"matcher", match}},
			})
		})
	}
}

// reminds waits for a day, once, and then gives up.
func reminds(_ context.Context, run *resume.Run) (resume.Next, error) {
	if ids := replies(run); len(ids) > 0 {
		return answer(run, ids).Wait(24 * time.Hour), nil
	}
	if run.TimedOut && run.Timeouts == 1 {
		return resume.Send(mailTo(run.Counterparty, "reminder")).Wait(24 * time.Hour), nil
	}
	if run.TimedOut {
		return resume.Done(), nil
	}
	return resume.Wait(24 * time.Hour), nil
}

// S9: a reply arrives as the deadline fires.
func TestDeadlineAgainstReply(t *testing.T) {
	q := question("w1")
	q.First = q.First.Wait(24 * time.Hour)
	explore(t, scenario{
		Name: "deadline-against-reply", Step: reminds,
		Setup:  do(start(q), settle, jump(25*time.Hour)),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "100 EUR")}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// Two people decide about one mail.
func TestTwoPeople(t *testing.T) {
	ours := func(err error) error {
		if errors.Is(err, resume.Err) {
			return nil
		}
		return err
	}
	item := func(w *world) string {
		items, err := w.Engine().Queue(w.Context(), "", 0)
		if err != nil || len(items) == 0 {
			return "nothing"
		}
		return items[0].EventID
	}
	bind := func(id string) func(*world) error {
		return func(w *world) error { return ours(w.Engine().Bind(w.Context(), item(w), id, "ann")) }
	}
	dismiss := func(w *world) error { return ours(w.Engine().Dismiss(w.Context(), item(w), "spam", "bob")) }
	undo := func(w *world) error {
		ev := w.Provider().Events()
		return ours(w.Engine().Undo(w.Context(), ev[len(ev)-1].ID, "bob"))
	}
	setup := do(ask("w1"), ask("w2"), fresh(supplier, "about which?"), settle)
	for name, actors := range map[string][]actor{
		"bind-against-dismiss":    {{"ann", bind("w1")}, {"bob", dismiss}},
		"bind-against-other-bind": {{"ann", bind("w1")}, {"bob", bind("w2")}},
		"bind-against-undo":       {{"ann", bind("w1")}, {"bob", undo}, {"worker", do(jump(11*time.Second), work)}},
		"bind-against-cancel": {{"ann", bind("w1")}, {"bob", func(w *world) error {
			return ours(w.Engine().Cancel(w.Context(), "w1", "bob"))
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			explore(t, scenario{Name: name, Step: acks, Setup: setup, Actors: actors})
		})
	}
}

// A person cancels while the program is at work.
func TestCancel(t *testing.T) {
	cancel := func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") }
	t.Run("against-sender", func(t *testing.T) {
		explore(t, scenario{
			Name: "cancel-against-sender", Step: acks,
			Setup:  start(question("w1")),
			Actors: []actor{{"sender", send}, {"ann", cancel}, {"reply", replyOnceSent("w1", "100 EUR")}},
			Check:  status("w1", resume.StatusCanceled),
		})
	})
	t.Run("against-worker", func(t *testing.T) {
		explore(t, scenario{
			Name: "cancel-against-worker", Step: acks,
			Setup:  do(ask("w1"), reply("w1", "100 EUR")),
			Actors: []actor{{"worker", work}, {"ann", cancel}},
			Check:  status("w1", resume.StatusCanceled),
		})
	})
	t.Run("and-reopen", func(t *testing.T) {
		t.Skip("engine fault: Reopen makes a workflow wait whose mail of the last step has no outcome yet")
		explore(t, scenario{
			Name: "cancel-and-reopen", Step: acks,
			Setup: do(start(question("w1"))),
			Actors: []actor{{"sender", send}, {"ann", do(cancel, func(w *world) error {
				if err := w.Engine().Reopen(w.Context(), "w1", "ann"); !errors.Is(err, resume.ErrNotOver) {
					return err
				}
				return nil
			})}},
		})
	})
}

// B33: an ID is used again while what the first life sent is still under way.
func TestIDUsedAgain(t *testing.T) {
	explore(t, scenario{
		Name: "id-used-again", Step: acks,
		Setup: start(question("w1")),
		Actors: []actor{{"sender", send}, {"ann", do(
			func(w *world) error { return w.Engine().Cancel(w.Context(), "w1", "ann") },
			start(question("w1")), send,
		)}, {"reply", replyOnceSent("w1", "100 EUR")}},
	})
}

// B16, B28: the same message by every door, and under a second event ID.
func TestSameMessageAgain(t *testing.T) {
	explore(t, scenario{
		Name: "same-message-again", Step: acks,
		Setup: do(ask("w1"), func(w *world) error {
			in, err := w.Reply("w1", "100 EUR")
			w.Provider().Announce(in.MessageID)
			return err
		}),
		Actors: []actor{
			{"push", func(w *world) error { ev := w.Provider().Events(); return w.Push(ev[len(ev)-1].ID) }},
			{"sweep", sweep},
			{"other push", func(w *world) error { ev := w.Provider().Events(); return w.Push(ev[len(ev)-2].ID) }},
		},
		Check: do(acked, sent(2)),
	})
}

// A delivery fails before we know that the message was ours.
func TestBounceAgainstSender(t *testing.T) {
	bounced := 0
	explore(t, scenario{
		Name: "bounce-against-sender",
		Step: func(_ context.Context, run *resume.Run) (resume.Next, error) {
			for _, in := range run.Inputs {
				if in.Kind == resume.InputBounce {
					return resume.Review("bounced"), nil
				}
			}
			bounced++
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

// B11: a workflow wants to answer in a thread that is another's.
func TestForeignThread(t *testing.T) {
	intrudes := func(_ context.Context, run *resume.Run) (resume.Next, error) {
		for _, in := range run.Inputs {
			if in.Kind == resume.InputSendError {
				return resume.Review("not my thread"), nil
			}
		}
		var state struct{ Message string }
		if err := run.Unmarshal(&state); err != nil || state.Message == "" {
			return resume.Wait(0), err
		}
		mail := mailTo(run.Counterparty, "hello")
		mail.ReplyTo = state.Message
		return resume.Send(mail), nil
	}
	explore(t, scenario{
		Name: "foreign-thread", Step: intrudes,
		Setup: do(ask("w1"), func(w *world) error {
			message := w.Provider().Sends()[0].MessageID
			return w.Start(resume.Start{ID: "w2", Counterparty: colleague, State: map[string]string{"Message": message}})
		}),
		Actors: []actor{{"worker", work}, {"sender", send}, {"reply", reply("w1", "100 EUR")}},
		Check: func(w *world) error {
			got, err := w.Engine().Workflow(w.Context(), "w2")
			if err == nil && got.Status != resume.StatusNeedsReview {
				err = fmt.Errorf("w2 is %s", got.Status)
			}
			return err
		},
	})
}

// S10: mail of a thread that is another's was bound by a person; the step
// answers it, is told that it cannot, and what it wrote beside must be undone
// with the run that is not.
func TestAnswerInAForeignThread(t *testing.T) {
	t.Skip("engine fault: what a step joined commits although its result is dropped for a thread of another")
	told := func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		for _, in := range run.Inputs {
			if in.Kind == resume.InputSendError {
				return resume.Review("not my thread"), nil
			}
		}
		return acks(ctx, run)
	}
	explore(t, scenario{
		Name: "answer-in-a-foreign-thread", Step: told,
		Config: resume.Config{Policy: resume.CounterpartyOnly},
		Setup: do(ask("w1"), start(resume.Start{ID: "w2", Counterparty: colleague, First: resume.Wait(0)}), func(w *world) error {
			thread, err := w.Thread("w1")
			if err != nil {
				return err
			}
			in := w.Inbound(efatest.Mail{From: colleague, Thread: thread, Text: "for two"})
			if err := do(settle)(w); err != nil {
				return err
			}
			return errors.Join(w.Engine().Bind(w.Context(), in.EventID, "w2", "ann"), w.Jump(11*time.Second))
		}),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "100 EUR")}},
		Check:  status("w2", resume.StatusNeedsReview),
	})
}
