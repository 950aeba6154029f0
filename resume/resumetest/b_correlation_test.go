package resumetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

// B7 to B13: whose mail it is.

// A colleague answers on the thread before we know it, and two workflows for
// that supplier are open: only the thread can tell.
func TestB7AnswerBeforeTheThreadIsKnown(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "answer-before-the-thread-is-known", Step: acks,
		Setup:  do(ask("w2"), answeredAtOnce(colleague), start(question("w1"))),
		Actors: []actor{{"sender", send}, {"door", do(sweep, match)}},
		Check:  do(status("w1", resume.StatusWaiting), acked, queue(0, "")),
	})
}

// A mail that could not be placed, and the send that makes its thread known,
// commit side by side.
func TestB8MatcherAgainstSender(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "matcher-against-sender", Step: acks,
		Setup:  do(answeredAtOnce(supplier), start(question("w1"))),
		Actors: []actor{{"sender", send}, {"door", do(sweep, match)}, {"matcher", match}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// Two mails on a new thread; the second is looked at when the first is bound.
func TestB9TwoMailsOnANewThread(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "two-mails-on-a-new-thread", Step: acks,
		Setup:  do(ask("w1"), twoOnAThread),
		Actors: []actor{{"matcher", match}, {"other matcher", match}, {"worker", work}},
		Check:  do(status("w1", resume.StatusWaiting), acked),
	})
}

// The same, and a person binds one of them: the other goes along.
func TestB9BindTakesAlong(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "bind-takes-along", Step: waits,
		Setup: do(ask("w1"), ask("w2"), twoOnAThread, settle),
		Actors: []actor{{"ann", func(w *world) error {
			items, err := w.Engine().Queue(w.Context(), "", 0)
			if err != nil || len(items) == 0 {
				return err
			}
			return w.Engine().Bind(w.Context(), items[0].EventID, "w1", "ann")
		}}, {"worker", do(jump(afterHold), work)}},
		Check: queue(0, ""),
	})
}

// A second workflow for that supplier begins while mail is matched by sender.
func TestB10StartAgainstSenderRule(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "start-against-sender-rule", Step: acks,
		Setup:  do(ask("w1"), fresh(supplier, "about which?")),
		Actors: []actor{{"matcher", match}, {"starter", do(start(question("w2")), send)}},
		Check: do(status("w1", resume.StatusWaiting), status("w2", resume.StatusWaiting), either(
			do(acked, places("w1")),
			do(unanswered, queue(1, resume.ReasonSeveralCandidates)),
		)),
	})
}

// The other workflow of that supplier is busy with a reply of its own.
func TestB10BusyWorkflowIsACandidate(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "busy-workflow-is-a-candidate", Step: acks,
		Setup:  do(ask("w1"), ask("w2"), reply("w2", "for two")),
		Actors: []actor{{"worker", work}, {"mail", do(fresh(supplier, "about which?"), match)}},
		Check:  queue(1, resume.ReasonSeveralCandidates),
	})
}

// A workflow answers in a thread that is another's, and finds out when the
// provider says where its mail stands.
func TestB11ForeignThread(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "foreign-thread", Step: intrudes,
		Setup: do(ask("w1"), func(w *world) error {
			message := w.Provider().Sends()[0].MessageID
			return w.Start(resume.Start{ID: "w2", Counterparty: colleague, State: map[string]string{"Message": message}})
		}),
		Actors: []actor{{"worker", work}, {"sender", send}, {"reply", reply("w1", "100 EUR")}},
		Check:  status("w2", resume.StatusNeedsReview),
	})
}

// The same, and it is known before: the step is told, and nothing of the run
// that it was not is kept.
func TestB11AnswerInAForeignThread(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "answer-in-a-foreign-thread", Step: told,
		Config: resume.Config{Policy: resume.CounterpartyOnly},
		Setup: do(ask("w1"), start(resume.Start{ID: "w2", Counterparty: colleague, First: resume.Wait(0)}), func(w *world) error {
			thread, err := w.Thread("w1")
			if err != nil {
				return err
			}
			in := w.Inbound(efatest.Mail{From: colleague, Thread: thread, Text: "for two"})
			if err := w.Settle(); err != nil {
				return err
			}
			return errors.Join(w.Engine().Bind(w.Context(), in.EventID, "w2", "ann"), w.Jump(afterHold))
		}),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "100 EUR")}},
		Check:  status("w2", resume.StatusNeedsReview),
	})
}

// A reply to a workflow that is over goes to a person.
func TestB12LateReply(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "late-reply", Step: ends,
		Actors: []actor{resumetest.Do("all", ask("w1"), reply("w1", "100 EUR"), settle, reply("w1", "and one more thing"))},
		Check:  do(status("w1", resume.StatusDone), queue(1, resume.ReasonLateReply)),
	})
}

// The workflow ends while a reply arrives.
func TestB12DoneAgainstReply(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "done-against-reply", Step: ends,
		Setup:  do(ask("w1"), reply("w1", "100 EUR")),
		Actors: []actor{{"worker", work}, {"reply", reply("w1", "and one more thing")}},
		Check:  status("w1", resume.StatusDone),
	})
}

// A person gives the thread of a finished workflow to another while more mail
// comes on it.
func TestB12ThreadMoves(t *testing.T) {
	t.Parallel()
	explore(t, scenario{
		Name: "thread-moves", Step: endsOne,
		Setup: do(ask("w1"), reply("w1", "100 EUR"), settle, reply("w1", "new business"), ask("w2")),
		Actors: []actor{{"ann", func(w *world) error {
			items, err := w.Engine().Queue(w.Context(), "", 0)
			if err != nil || len(items) == 0 {
				return err
			}
			return w.Engine().Bind(w.Context(), items[0].EventID, "w2", "ann")
		}}, {"reply", reply("w1", "hello?")}, {"matcher", match}},
		Check: queue(0, ""),
	})
}

// The same thread ID in another inbox is another thread.
func TestB13SameThreadIDElsewhere(t *testing.T) {
	t.Parallel()
	play(t, scenario{
		Name: "same-thread-id-elsewhere", Step: acks, Config: resume.Config{UnreadableUntil: 10 * time.Minute},
		Provider: efatest.Config{Inboxes: map[string]string{"ibx_a": "a@test.mail.invalid", "ibx_b": "b@test.mail.invalid"}},
		Setup:    ask("w1"),
		Actors: []actor{{"door", func(w *world) error {
			thread, err := w.Thread("w1")
			if err != nil {
				return err
			}
			return w.PushEvent(events.Event{ID: "evt_elsewhere", Kind: events.KindReceived, Inbox: "ibx_b", Thread: thread, Message: "msg_elsewhere"})
		}}},
		Check: do(sent(1), queue(1, resume.ReasonUnreadable)),
	})
}
