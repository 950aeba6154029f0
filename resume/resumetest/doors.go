package resumetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// Push delivers an event at the push door and returns after its answer. The
// cursor may not show it yet.
func (w *World) Push(eventID string) error {
	all := w.srv.Events()
	i := slices.IndexFunc(all, func(e efatest.Event) bool { return e.ID == eventID })
	if i < 0 {
		return fmt.Errorf("resumetest: the provider has no event %s", eventID)
	}
	body, err := json.Marshal(map[string]any{"id": eventID, "type": all[i].Type, "data": all[i].Data})
	if err != nil {
		return err
	}
	ev, err := efa.Profile(verify.Delivery{ID: eventID}, body)
	if err != nil {
		return err
	}
	return w.PushEvent(ev)
}

// PushEvent is Push for an event of your own making.
func (w *World) PushEvent(ev events.Event) error {
	ev.Sequence, ev.OccurredAt = 0, time.Time{} // that door does not carry them
	w.feed(ev)
	if _, err := w.process.inbox.Push(w.ctx, ev); err != nil {
		return err
	}
	w.acknowledged(ev)
	return nil
}

// PushType delivers every event of a provider's type that stands in its record
// now, such as efatest.MessageQueued.
func (w *World) PushType(typ string) error {
	for _, e := range w.srv.Events() {
		if e.Type == typ {
			if err := w.Push(e.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReplyAndPush is Reply, with the push of its event.
func (w *World) ReplyAndPush(workflow, text string) error {
	in, err := w.Reply(workflow, text)
	if err != nil {
		return err
	}
	return w.Push(in.EventID)
}

// InboundAndPush is Inbound, with the push of its event.
func (w *World) InboundAndPush(m efatest.Mail) error {
	if err := boundary(w.ctx, "provider: before a message arrives"); err != nil {
		return err
	}
	return w.Push(w.Inbound(m).EventID)
}

// Sweep takes one page at the pull door, above the stored cursor. If that is
// the last one, everything up to now counts as received.
func (w *World) Sweep() error {
	_, err := w.sweep()
	return err
}

// SweepFrom takes everything above a cursor once more, as a person asks for
// (see [events.Sweeper.SweepFrom]).
func (w *World) SweepFrom(at events.Cursor) error {
	for page, err := range events.Pages(w.ctx, w.mail.Source(), at) {
		if err != nil {
			return err
		}
		w.feed(page.Events...)
		if _, err := w.process.inbox.Take(w.ctx, events.Batch{Events: page.Events, History: true}); err != nil {
			return err
		}
		w.acknowledged(page.Events...)
	}
	return nil
}

const looksBack = 2 * time.Minute

func (w *World) sweep() (n int, err error) {
	at, err := w.process.inbox.Position(w.ctx)
	if err != nil {
		return 0, err
	}
	from, err := w.lookBack(at.Cursor)
	if err != nil {
		return 0, err
	}
	page, err := w.page(from)
	if err != nil {
		return 0, err
	}
	if len(page.Events) > 0 {
		w.feed(page.Events...)
		if _, err := w.process.inbox.Take(w.ctx, events.Batch{Events: page.Events, Cursor: max(at.Cursor, page.Last())}); err != nil {
			return 0, err
		}
		w.acknowledged(page.Events...)
	}
	if page.More {
		return len(page.Events), nil
	}
	w.swept.Store(true)
	return len(page.Events), w.process.inbox.Reached(w.ctx, at.Now, max(at.Cursor, page.Last()), looksBack, true)
}

// lookBack is a cursor below what was shown late: a sweeper begins so much
// lower that it meets it.
func (w *World) lookBack(from events.Cursor) (events.Cursor, error) {
	t, _, err := w.present()
	if err != nil {
		return 0, err
	}
	for _, ev := range t.missing(w.srv.Events()) {
		if ev.Visible.After(ev.At) && !ev.Visible.After(w.srv.Now()) {
			from = min(from, events.Cursor(ev.Sequence-1))
		}
	}
	return from, nil
}

// page reads above a cursor. If that has expired it is a loss, and the page is
// the first of what remains.
func (w *World) page(at events.Cursor) (events.Page, error) {
	if err := boundary(w.ctx, "provider: before a page of events"); err != nil {
		return events.Page{}, err
	}
	page, err := w.mail.Source().Page(w.ctx, at)
	if !errors.Is(err, events.ErrCursorExpired) {
		return page, err
	}
	if page, err = w.mail.Source().Page(w.ctx, 0); err != nil {
		return page, err
	}
	oldest := events.Cursor(0)
	if len(page.Events) > 0 {
		oldest = page.Events[0].Sequence
	}
	return page, w.process.inbox.Lost(w.ctx, at, oldest)
}

// Event reads an event of the provider's record, as its API shows it.
func (w *World) Event(id string) (events.Event, error) {
	all := w.srv.Events()
	i := slices.IndexFunc(all, func(e efatest.Event) bool { return e.ID == id })
	if i < 0 {
		return events.Event{}, fmt.Errorf("resumetest: the provider has no event %s", id)
	}
	page, err := w.mail.Source().Page(w.ctx, events.Cursor(all[i].Sequence-1))
	if err != nil {
		return events.Event{}, err
	}
	for _, ev := range page.Events {
		if ev.ID == id {
			return ev, nil
		}
	}
	return events.Event{}, fmt.Errorf("resumetest: the cursor does not show event %s yet", id)
}

func (w *world) feed(evs ...events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range evs {
		w.fed[ev.ID] = ev
	}
}

func (w *world) acknowledged(evs ...events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range evs {
		w.taken[ev.ID] = true
	}
}
