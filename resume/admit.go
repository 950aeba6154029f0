package resume

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/internal/sqldb"
)

// Verdict is what a [Policy] says of a message.
type Verdict int

// The verdicts.
const (
	Accept    Verdict = iota // the step sees it
	ToPerson                 // a person must look first
	RejectOut                // nobody needs to see it; it stays listed as settled
)

// Policy judges a message before the step sees it. It must not block: it has
// the message, not the provider.
type Policy func(in Input, counterparty string) Verdict

// AcceptAll accepts every message that reached the workflow.
func AcceptAll(Input, string) Verdict { return Accept }

// ThreadOnly accepts messages in a thread of the workflow's own and what a
// person bound; a sender match alone goes to a person.
func ThreadOnly(in Input, _ string) Verdict {
	if in.Proof == ProofSender {
		return ToPerson
	}
	return Accept
}

// CounterpartyOnly accepts messages whose From is the counterparty and what a
// person bound; others in the thread go to a person.
func CounterpartyOnly(in Input, _ string) Verdict {
	if in.Proof == ProofThread {
		return ToPerson
	}
	return Accept
}

// toPerson is the verdict that a person must look first.
func (m *mailRow) toPerson(reason string, w *workflowRow) *mailRow {
	m.place, m.reason, m.workflow, m.candidates = placeReview, reason, "", []string{w.id}
	return m
}

// errLoop: the workflow sends again each time that its mail is refused.
var errLoop = fmt.Errorf("%w: a loop: its mail is refused, and it planned as many sends within the hour as MaxSendsPerHour allows", Err)

// admit decides on each loaded input, in one order: own echo, loop cap (bounces
// too: a step that sends again each time is a loop), delivery notice, policy.
// Verdicts other than accept are stored with the run. News that mail never left
// is no mail that a person could place: in a loop it is errLoop, unless a person
// had the workflow run.
func (e *Engine) admit(ctx context.Context, w *workflowRow, in []*loaded) (accepted []*loaded, verdicts []*mailRow, err error) {
	if len(in) == 0 {
		return nil, nil, nil
	}
	looping, err := e.looping(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	begun, err := e.begun(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range in {
		l.input.Step = begun.at(written(l.row, l.input.Message))
		if l.input.Kind != InputReply {
			switch {
			case looping && !w.Kick && (l.input.Kind == InputSendError || l.input.Kind == InputRejected):
				return nil, nil, errLoop
			case looping && l.input.Kind == InputBounce && l.row.matchedBy != matchedByPerson:
				verdicts = append(verdicts, l.row.toPerson(ReasonLoop, w))
			default:
				accepted = append(accepted, l)
			}
			continue
		}
		from, _ := client.NormalizeAddress(l.input.Message.From.Text())
		l.input.Proof = proofOf(l.row.matchedBy, from != "" && from == w.counterparty)
		l.row.proof = string(l.input.Proof)
		switch verdict, reason := e.judge(l, w, from, looping); verdict {
		case Accept:
			accepted = append(accepted, l)
		case ToPerson:
			verdicts = append(verdicts, l.row.toPerson(reason, w))
		default:
			l.row.place, l.row.reason = placeSettled, reason
			verdicts = append(verdicts, l.row)
		}
	}
	return accepted, verdicts, nil
}

func (e *Engine) judge(l *loaded, w *workflowRow, from string, looping bool) (Verdict, string) {
	switch {
	case l.input.Message.Outbound || e.own[w.inbox][from]:
		return RejectOut, "echo"
	case looping && l.row.matchedBy != matchedByPerson:
		return ToPerson, ReasonLoop
	case isDaemon(from):
		l.input.Kind, l.input.Suspected, l.input.Delivery = InputBounce, true, client.DeliveryBounced
		return Accept, ""
	case l.row.matchedBy == matchedByPerson:
		return Accept, ""
	}
	verdict := e.cfg.Policy(l.input, w.counterparty)
	if verdict == ToPerson {
		return verdict, ReasonPolicy
	}
	return verdict, "policy"
}

// looping says whether the workflow has answered so much mail within the hour
// that a person should look: two robots may be talking.
func (e *Engine) looping(ctx context.Context, w *workflowRow) (bool, error) {
	l := &ledger{e: e, tx: e.db.Read()}
	n, err := l.count(ctx, e.st.SendRecent, e.cfg.Name, w.id, w.run, -time.Hour)
	return n >= int64(e.cfg.MaxSendsPerHour), err
}

// attempts are when a workflow's sends were first attempted.
type attempts []attempt

type attempt struct {
	step int64
	at   time.Time
}

func (e *Engine) begun(ctx context.Context, w *workflowRow) (all attempts, err error) {
	var a attempt
	err = e.db.Read().Query(ctx, e.st.SendsBegun, []any{e.cfg.Name, w.id, w.run}, func(scan sqldb.Scan) error {
		err := scan(&a.step, &a.at)
		all = append(all, a)
		return err
	})
	return all, err
}

// at is the last send that was under way at t, 0 before the first.
func (all attempts) at(t time.Time) (step int64) {
	for _, a := range all {
		if !a.at.After(t) {
			step = a.step
		}
	}
	return step
}

func proofOf(matchedBy string, counterparty bool) Proof {
	switch {
	case matchedBy == matchedByPerson:
		return ProofPerson
	case matchedBy == matchedBySender:
		return ProofSender
	case counterparty:
		return ProofThreadAndSender
	}
	return ProofThread
}
