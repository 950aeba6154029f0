package resume

import (
	"context"
	"fmt"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// Queue lists mail that a person must place, oldest first: at most limit items
// (0 is 100) behind the event ID after ("" from the beginning).
func (e *Engine) Queue(ctx context.Context, after string, limit int) ([]Item, error) {
	if limit <= 0 {
		limit = 100
	}
	tx := e.db.Read()
	var from int64
	if after != "" {
		m, err := oneOf(ctx, tx, scanMail, e.st.MailRead, e.cfg.Name, after)
		if err != nil {
			return nil, err
		}
		if m != nil {
			from = m.id
		}
	}
	rows, err := rowsOf(ctx, tx, scanMail, e.st.MailReview, e.cfg.Name, from, limit)
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
	var out []Candidate
	for _, id := range m.candidates {
		w, err := oneOf(ctx, e.db.Read(), scanWorkflow, e.st.Workflow, e.cfg.Name, id)
		if err != nil {
			return nil, err
		}
		if w == nil {
			continue
		}
		c := Candidate{Workflow: w.id, Status: w.Status, Step: w.Step}
		sends, err := rowsOf(ctx, e.db.Read(), scanSend, e.st.SendOf, e.cfg.Name, w.id, w.run)
		if err != nil {
			return nil, err
		}
		if len(sends) > 0 {
			last := sends[len(sends)-1]
			c.Subject, c.SentAt = last.subject, last.created
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
