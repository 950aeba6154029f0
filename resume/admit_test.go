package resume_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// Each preset before every proof.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const colleague = "colleague@example.com"
	for name, c := range map[string]struct {
		policy                         resume.Policy
		counterparty, other, newThread bool // is it shown?
	}{
		"default":           {nil, true, true, true},
		"accept all":        {resume.AcceptAll, true, true, true},
		"thread only":       {resume.ThreadOnly, true, true, false},
		"counterparty only": {resume.CounterpartyOnly, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{Policy: c.policy})
				sent := r.ask("w1", supplier)
				shown := 0
				for _, m := range []struct {
					mail  efatest.Mail
					proof resume.Proof
					shown bool
				}{
					{efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "a"}, resume.ProofThreadAndSender, c.counterparty},
					{efatest.Mail{From: colleague, ReplyTo: sent.MessageID, Text: "b"}, resume.ProofThread, c.other},
					{efatest.Mail{From: supplier, Text: "c"}, resume.ProofSender, c.newThread},
				} {
					in := r.srv.Inbound(m.mail)
					r.rest()
					if !m.shown {
						it := r.queued()
						require.Equal(t, in.EventID, it.EventID)
						require.Equal(t, resume.ReasonPolicy, it.Reason)
						require.Equal(t, "w1", it.Candidates[0].Workflow)
						require.Len(t, r.runs(), shown, "with none accepted the step is not called")
						require.Equal(t, resume.StatusWaiting, r.status("w1"))

						require.NoError(t, r.eng.Bind(t.Context(), in.EventID, "w1", "ann")) // and a person is believed
						require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
						r.rest()
						m.proof = resume.ProofPerson
					}
					shown++
					run := r.last(shown)
					require.Equal(t, []string{in.MessageID}, messages(run))
					require.Equal(t, m.proof, run.Inputs[0].Proof)
				}
			})
		})
	}
}

// A verdict on one input does not delay the others.
func TestOnlyAcceptedInputsAreShown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		var asked []string
		r := open(listens, resume.Config{Policy: func(in resume.Input, counterparty string) resume.Verdict {
			asked = append(asked, counterparty)
			switch in.Body.Text.Text() {
			case "person":
				return resume.ToPerson
			case "reject":
				return resume.RejectOut
			}
			return resume.Accept
		}})
		sent := r.ask("w1", supplier)
		var ids []string
		for _, text := range []string{"reject", "fine", "person"} {
			ids = append(ids, r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: text}).MessageID)
		}
		r.rest()
		require.Equal(t, []string{ids[1]}, messages(r.last(1)))
		require.Equal(t, ids[2], r.queued().Message)
		require.Equal(t, []string{supplier, supplier, supplier}, asked)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
		require.Zero(t, r.workflow("w1").Pending)
		require.Equal(t, 1, r.count("select count(*) from {s}mail where place = 'settled' and reason = 'policy'"))
	})
}

// Policy comes after what the engine knows better: an echo is no reply,
// whatever the policy would say, and a daemon is no person.
func TestPolicyIsNotAskedAboutEchoesAndDaemons(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Policy: func(in resume.Input, _ string) resume.Verdict {
			return resume.ToPerson
		}})
		sent := r.ask("w1", supplier)
		r.srv.Inbound(efatest.Mail{From: r.srv.Address(r.srv.Inbox()), ReplyTo: sent.MessageID, Text: "echo"})
		r.srv.Inbound(efatest.Mail{From: "mailer-daemon@example.com", ReplyTo: sent.MessageID, Text: "bounce"})
		r.rest()
		run := r.last(1)
		require.Len(t, run.Inputs, 1)
		require.Equal(t, resume.InputBounce, run.Inputs[0].Kind)
		require.Empty(t, r.queue())
	})
}

// Two robots that answer each other are stopped; a person may let them go on.
func TestLoopCap(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) {
			return answer(run, "I am out of office"), nil
		},
			resume.Config{MaxSendsPerHour: 3})
		sent := r.ask("w1", supplier)
		robot := func() efatest.Received {
			in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "so am I"})
			r.rest()
			return in
		}
		for range 3 {
			robot()
		}
		require.Len(t, r.srv.Sends(), 4)
		in := robot()
		require.Len(t, r.srv.Sends(), 4)
		require.Equal(t, resume.ReasonLoop, r.queued().Reason)

		require.NoError(t, r.eng.Bind(t.Context(), in.EventID, "w1", "ann"))
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Len(t, r.srv.Sends(), 5, "a person may")
		r.jump(61 * time.Minute)
		robot()
		require.Len(t, r.srv.Sends(), 6, "an hour later it is no loop")
	})
}

// A robot that only ever says that mail did not arrive is one too, and so is a
// provider: a step that sends again each time is stopped.
func TestLoopCapCountsAnswersToBounces(t *testing.T) {
	t.Parallel()
	for name, bounce := range map[string]func(r *rig, last efatest.Send){
		"delivery notice": func(r *rig, last efatest.Send) {
			r.srv.Inbound(efatest.Mail{From: "mailer-daemon@example.com", ReplyTo: last.MessageID, Text: "undeliverable"})
		},
		"event": func(r *rig, last efatest.Send) { r.srv.DeliveryUpdate(last.MessageID, "bounced") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(func(context.Context, *resume.Run) (resume.Next, error) { return question(supplier), nil },
					resume.Config{MaxSendsPerHour: 3})
				r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				r.rest()
				for range 5 {
					sends := r.srv.Sends()
					bounce(r, sends[len(sends)-1])
					r.rest()
				}
				require.Len(t, r.srv.Sends(), 4)
				it, err := r.eng.Queue(t.Context(), "", 0)
				require.NoError(t, err)
				require.NotEmpty(t, it)
				require.Equal(t, resume.ReasonLoop, it[0].Reason)
				require.Equal(t, "w1", it[0].Candidates[0].Workflow)
				require.Equal(t, resume.StatusWaiting, r.status("w1"))

				require.NoError(t, r.eng.Bind(t.Context(), it[0].EventID, "w1", "ann"))
				require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
				r.rest()
				require.Len(t, r.srv.Sends(), 5, "a person may")
			})
		})
	}
}

// In a loop a person looks, whatever the policy says.
func TestLoopCapComesBeforeThePolicy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		asked := 0
		r := open(func(_ context.Context, run *resume.Run) (resume.Next, error) { return answer(run, "x"), nil },
			resume.Config{MaxSendsPerHour: 1, Policy: func(resume.Input, string) resume.Verdict {
				asked++
				return resume.Accept
			}})
		sent := r.ask("w1", supplier)
		for range 2 {
			r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "y"})
			r.rest()
		}
		require.Equal(t, resume.ReasonLoop, r.queued().Reason)
		require.Equal(t, 1, asked)
	})
}

// The cap counts answers to mail, not the step's own mail: reminders are no loop.
func TestLoopCapDoesNotCountReminders(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(nil, resume.Config{MaxSendsPerHour: 2})
		sent := r.ask("w1", supplier)
		r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) { return question(supplier), nil })
		for i := range 4 {
			require.NoError(t, r.signal("w1", fmt.Sprint(i), ""))
			r.rest()
		}
		require.Len(t, r.srv.Sends(), 5)
		in := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
		r.rest()
		require.Equal(t, []string{in.MessageID}, messages(r.last(5)))
		require.Empty(t, r.queue())
	})
}

// A step that sends again each time its mail is refused asks a person, and does
// not hammer the provider.
func TestLoopCapCountsAnswersToRefusals(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(func(context.Context, *resume.Run) (resume.Next, error) { return question(supplier), nil },
			resume.Config{MaxSendsPerHour: 3})
		fault := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, When: efatest.When{Always: true}, Status: 422, Code: "recipient_suppressed"})
		r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
		r.rest()
		require.Equal(t, resume.StatusNeedsReview, r.status("w1"))
		require.Len(t, r.runs(), 3)
		require.Contains(t, r.workflow("w1").Error, "loop")

		fault.Disarm()
		require.NoError(t, r.eng.RunNow(t.Context(), "w1", "ann"))
		r.rest()
		require.Equal(t, resume.StatusWaiting, r.status("w1"), "a person may")
		require.Len(t, r.srv.Sends(), 1)
		require.Equal(t, resume.InputSendError, r.last(4).Inputs[0].Kind, "nothing is lost")
	})
}
