package resume

import (
	"context"
	"fmt"
	"math"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Queue lists mail that a person must place, oldest first: at most limit items
// (0 is 100) behind the event ID after ("" from the beginning).
func (e *Engine) Queue(ctx context.Context, after string, limit int) ([]Item, error) {
	from, err := e.position(ctx, after)
	if err != nil {
		return nil, err
	}
	return e.items(ctx, e.st.MailReview, from, limit)
}

// Settled lists messages that no workflow got and no person decided on, newest
// first: what the policy rejected, echoes, delivery notices, what waited in the
// queue too long. [Engine.Bind] takes them. At most limit items (0 is 100)
// older than the event ID before ("" from the newest).
func (e *Engine) Settled(ctx context.Context, before string, limit int) ([]Item, error) {
	from, err := e.position(ctx, before)
	if err != nil {
		return nil, err
	}
	if from == 0 {
		from = math.MaxInt64
	}
	return e.items(ctx, e.st.MailSettled, from, limit)
}

// position is where a listing goes on; 0 if the event is "" or unknown.
func (e *Engine) position(ctx context.Context, eventID string) (int64, error) {
	if eventID == "" {
		return 0, nil
	}
	m, err := oneOf(ctx, e.db.Read(), scanMail, e.st.MailRead, e.cfg.Name, eventID)
	if err != nil || m == nil {
		return 0, err
	}
	return m.id, nil
}

func (e *Engine) items(ctx context.Context, query string, from int64, limit int) ([]Item, error) {
	if limit <= 0 {
		limit = 100
	}
	rows, err := rowsOf(ctx, e.db.Read(), scanMail, query, e.cfg.Name, from, limit)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(rows))
	for i, m := range rows {
		items[i] = Item{EventID: m.eventID, Inbox: m.inbox, Thread: m.thread, Message: m.message, Kind: string(m.kind), Reason: m.reason, At: m.arrived}
		if items[i].Candidates, err = e.candidatesOf(ctx, m); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (e *Engine) candidatesOf(ctx context.Context, m *mailRow) ([]Candidate, error) {
	meant := sendAccepted
	if m.kind == events.KindQueued {
		meant = sendHeld // the mail itself may be it
	}
	var out []Candidate
	for _, id := range m.candidates {
		w, err := oneOf(ctx, e.db.Read(), scanWorkflow, e.st.Workflow, e.cfg.Name, id)
		if err != nil {
			return nil, err
		}
		if w == nil {
			continue
		}
		c := Candidate{Workflow: w.id, Status: w.Status}
		sends, err := rowsOf(ctx, e.db.Read(), scanSend, e.st.SendOf, e.cfg.Name, w.id, w.run)
		if err != nil {
			return nil, err
		}
		for _, s := range sends {
			if s.state == meant {
				c.Step, c.Subject, c.SentAt = s.step, s.subject, s.settled
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// Decisions is what people did with mail, oldest first.
func (e *Engine) Decisions(ctx context.Context, eventID string) ([]Moment, error) {
	return e.moments(ctx, e.st.HistoryEvent, e.cfg.Name, eventID)
}

// Workflow reads a workflow; [ErrNotFound] if there is none.
func (e *Engine) Workflow(ctx context.Context, id string) (Workflow, error) {
	w, err := oneOf(ctx, e.db.Read(), scanWorkflow, e.st.Workflow, e.cfg.Name, id)
	if err != nil {
		return Workflow{}, fmt.Errorf("read workflow: %w", err)
	}
	if w == nil {
		return Workflow{}, ErrNotFound
	}
	return w.view(), nil
}

// Workflows lists workflows by ID, behind after, with a status ("" for all);
// at most limit (0 is 100).
func (e *Engine) Workflows(ctx context.Context, status Status, after string, limit int) ([]Workflow, error) {
	if limit <= 0 {
		limit = 100
	}
	rows, err := rowsOf(ctx, e.db.Read(), scanWorkflow, e.st.List, e.cfg.Name, after, string(status), limit)
	out := make([]Workflow, len(rows))
	for i, w := range rows {
		out[i] = w.view()
	}
	return out, err
}

// Timeline is what happened to a workflow's present run, oldest first.
func (e *Engine) Timeline(ctx context.Context, id string) ([]Moment, error) {
	w, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	return e.moments(ctx, e.st.HistoryOf, e.cfg.Name, w.ID, w.Run)
}

func (e *Engine) moments(ctx context.Context, query string, args ...any) ([]Moment, error) {
	rows, err := rowsOf(ctx, e.db.Read(), func(scan sqldb.Scan, m *Moment) error { return scan(&m.At, &m.What, &m.Step, &m.Detail) }, query, args...)
	out := make([]Moment, len(rows))
	for i, m := range rows {
		out[i] = *m
	}
	return out, err
}

// Seen are the messages placed in a workflow's present run, in the order they
// were given to its steps, those not given yet last.
func (e *Engine) Seen(ctx context.Context, id string) ([]string, error) {
	w, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, e.db.Read(), scanMail, e.st.MailInputs, e.cfg.Name, w.ID, w.Run)
	out := []string{}
	for _, m := range rows {
		if m.kind == events.KindReceived {
			out = append(out, m.message)
		}
	}
	return out, err
}
