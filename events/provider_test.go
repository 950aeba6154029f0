package events_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// provider is a Source with sequences: a stream with late-visible rows,
// expiry, and answers that a test puts in its place.
type provider struct {
	mu     sync.Mutex
	now    func() time.Time
	rows   []row
	oldest events.Cursor // what lies below has expired
	limit  int
	stream events.Stream

	asked  []events.Cursor
	heads  int
	answer func(n int, after events.Cursor) (*events.Page, error) // nil, nil: as usual
	inside func(n int)                                            // runs during a request, outside the lock
	date   func() time.Time
}

type row struct {
	id       string
	sequence events.Cursor
	visible  time.Time
}

func newProvider(sequences ...events.Cursor) *provider {
	p := &provider{now: time.Now, limit: 2, stream: newMemory().stream}
	p.add(sequences...)
	return p
}

func (p *provider) add(sequences ...events.Cursor) {
	for _, s := range sequences {
		p.addLate(s, 0)
	}
}

func (p *provider) addLate(s events.Cursor, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = append(p.rows, row{eventID(s), s, p.now().Add(late)})
	slices.SortFunc(p.rows, func(a, b row) int { return int(a.sequence - b.sequence) })
}

func eventID(s events.Cursor) string { return fmt.Sprintf("evt_%d", s) }

func eventIDs(sequences ...events.Cursor) []string {
	var ids []string
	for _, s := range sequences {
		ids = append(ids, eventID(s))
	}
	return ids
}

func (p *provider) Stream() events.Stream { return p.stream }
func (p *provider) Sequenced() bool       { return true }

func (p *provider) Page(ctx context.Context, after events.Cursor) (events.Page, error) {
	p.mu.Lock()
	p.asked = append(p.asked, after)
	n := len(p.asked)
	p.mu.Unlock()
	if p.inside != nil {
		p.inside(n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return events.Page{}, err
	}
	if p.answer != nil {
		page, err := p.answer(n, after)
		if err != nil {
			return events.Page{}, err
		}
		if page != nil {
			return *page, nil
		}
	}
	if after > 0 && after+1 < p.oldest {
		return events.Page{}, errExpired
	}
	return p.page(after), nil
}

var errExpired = &client.Error{Op: "list events", Status: 410, Code: "cursor_expired", Class: client.ClassRequest, Cause: events.ErrCursorExpired}

func (p *provider) page(after events.Cursor) events.Page {
	var page events.Page
	if p.date != nil {
		page.Date = p.date()
	}
	for _, r := range p.rows {
		if r.sequence <= after || r.sequence < p.oldest || r.visible.After(p.now()) {
			continue
		}
		if len(page.Events) == p.limit {
			page.More = true
			break
		}
		page.Events = append(page.Events, events.Event{ID: r.id, Kind: events.KindReceived, Sequence: r.sequence})
	}
	return page
}

func (p *provider) Head(ctx context.Context) (events.Cursor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads++
	if p.answer != nil {
		if _, err := p.answer(0, 0); err != nil {
			return 0, err
		}
	}
	head := events.Cursor(0)
	for _, r := range p.rows {
		if r.sequence >= p.oldest && !r.visible.After(p.now()) {
			head = max(head, r.sequence)
		}
	}
	return head, ctx.Err()
}

// fail answers every request with err, until it is nil.
func (p *provider) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = nil
	if err != nil {
		p.answer = func(int, events.Cursor) (*events.Page, error) { return nil, err }
	}
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// mailbox is a Source without sequences: it shows what has not been settled.
type mailbox struct {
	mu      sync.Mutex
	unread  []string
	limit   int
	stuck   bool // settling has no effect
	settled []string
	reads   int
	inside  func(reads int)
	fail    error // of Settle
}

func newMailbox(ids ...string) *mailbox { return &mailbox{unread: ids, limit: 2} }

func (b *mailbox) Stream() events.Stream                       { return newMemory().stream }
func (b *mailbox) Sequenced() bool                             { return false }
func (b *mailbox) Head(context.Context) (events.Cursor, error) { return 0, nil }

func (b *mailbox) Page(ctx context.Context, _ events.Cursor) (events.Page, error) {
	b.mu.Lock()
	b.reads++
	var page events.Page
	for _, id := range b.unread[:min(b.limit, len(b.unread))] {
		page.Events = append(page.Events, events.Event{ID: id, Kind: events.KindReceived})
	}
	page.More = len(b.unread) > b.limit
	reads := b.reads
	b.mu.Unlock()
	if b.inside != nil {
		b.inside(reads)
	}
	return page, ctx.Err()
}

func (b *mailbox) Settle(_ context.Context, evs []events.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	for _, ev := range evs {
		b.settled = append(b.settled, ev.ID)
		if !b.stuck {
			b.unread = slices.DeleteFunc(b.unread, func(id string) bool { return id == ev.ID })
		}
	}
	return nil
}

func (b *mailbox) receive(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread = append(b.unread, ids...)
}
