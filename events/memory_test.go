package events_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/replywake/replywake/events"
)

// memory is a Receiver as dedupe.Inbox is one, without a store: IDs, floor,
// positions and lease, each call one commit.
type memory struct {
	mu  sync.Mutex
	now func() time.Time

	claims map[string]*claim
	handed map[string]int // how often an event was handed over
	order  []string

	pos         events.Position
	from, floor events.Cursor // what lies between is handled and forgotten

	owner string
	until time.Time

	parks      map[string]bool // IDs that the program's handler fails on
	unreadable map[string]int

	takes    []events.Batch
	reached  []reached
	losses   []events.Loss
	leases   int
	releases int

	before func(op string) error           // fails a call: nothing happens
	after  func(op string) error           // loses the answer: it has happened
	inside func(op string)                 // runs during a call, outside the lock
	push   func(ctx context.Context) error // stands in for Push
	stream events.Stream
}

type claim struct {
	sequence events.Cursor
	swept    bool // in its turn
	first    time.Time
}

type reached struct {
	through events.Cursor
	head    bool
}

func newMemory() *memory {
	return &memory{
		now:    time.Now,
		claims: map[string]*claim{}, handed: map[string]int{},
		parks: map[string]bool{}, unreadable: map[string]int{},
		stream: events.Stream{Name: "test", Origin: "https://provider.example/p1", Environment: "test"},
	}
}

var errStore = errors.New("store is down")

// call is one commit.
func (m *memory) call(ctx context.Context, op string, commit func()) error {
	if m.inside != nil {
		m.inside(op)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.before != nil {
		if err := m.before(op); err != nil {
			return err
		}
	}
	commit()
	if m.after != nil {
		return m.after(op)
	}
	return nil
}

func (m *memory) Stream() events.Stream { return m.stream }

func (m *memory) Push(ctx context.Context, ev events.Event) (res events.Result, err error) {
	if m.push != nil {
		if err := m.push(ctx); err != nil {
			return res, err
		}
	}
	err = m.call(ctx, "push", func() { m.claim(ev, false, &res) })
	if err == nil && res.Parked > 0 {
		err = events.ErrParked
	}
	return res, err
}

func (m *memory) claim(ev events.Event, swept bool, res *events.Result) {
	if c := m.claims[ev.ID]; c != nil {
		c.sequence, c.swept = max(c.sequence, ev.Sequence), c.swept || swept
		res.Duplicate++
		return
	}
	m.claims[ev.ID] = &claim{ev.Sequence, swept, m.now()}
	if m.parks[ev.ID] {
		res.Parked++
		return
	}
	m.handed[ev.ID]++
	m.order = append(m.order, ev.ID)
	res.Fresh++
}

func (m *memory) Unreadable(ctx context.Context, id string) (times int, err error) {
	err = m.call(ctx, "unreadable", func() {
		m.unreadable[id]++
		times = m.unreadable[id]
	})
	return times, err
}

func (m *memory) Position(ctx context.Context) (pos events.Position, err error) {
	err = m.call(ctx, "position", func() {
		m.pos.Now = m.now()
		pos = m.pos
	})
	return pos, err
}

func (m *memory) Attach(ctx context.Context, head events.Cursor) error {
	return m.call(ctx, "attach", func() {
		if !m.pos.Known {
			m.pos.Known = true
			m.pos.Cursor, m.pos.Settled, m.pos.Attached = head, head, head
		}
	})
}

func (m *memory) Take(ctx context.Context, b events.Batch) (res events.Result, err error) {
	err = m.call(ctx, "take", func() {
		m.takes = append(m.takes, b)
		for _, ev := range b.Events {
			history := ev.Sequence <= m.pos.Attached && !b.History
			forgotten := m.from <= ev.Sequence && ev.Sequence <= m.floor
			if m.claims[ev.ID] == nil && ev.Sequence > 0 && (history || forgotten) {
				res.Skipped++
				continue
			}
			m.claim(ev, ev.Sequence > m.pos.Settled && !b.History, &res)
		}
		m.pos.Cursor = max(m.pos.Cursor, b.Cursor)
	})
	return res, err
}

func (m *memory) Reached(ctx context.Context, began time.Time, through events.Cursor, lookBack time.Duration, head bool) error {
	return m.call(ctx, "reached", func() {
		m.reached = append(m.reached, reached{through, head})
		for _, c := range m.claims {
			if c.sequence <= through && c.first.Before(began.Add(-lookBack)) {
				m.pos.Settled = max(m.pos.Settled, c.sequence)
			}
		}
		if head && began.After(m.pos.Through) {
			m.pos.Through = began
		}
	})
}

func (m *memory) Lost(ctx context.Context, cursor, oldest events.Cursor) error {
	return m.call(ctx, "lost", func() {
		m.losses = append(m.losses, events.Loss{Cursor: cursor, Oldest: oldest})
	})
}

func (m *memory) Lease(ctx context.Context, owner string, d time.Duration) (ok bool, err error) {
	err = m.call(ctx, "lease", func() {
		m.leases++
		if ok = m.owner == "" || m.owner == owner || !m.now().Before(m.until); ok {
			m.owner, m.until = owner, m.now().Add(d)
		}
	})
	return ok, err
}

func (m *memory) Release(ctx context.Context, owner string) error {
	return m.call(ctx, "release", func() {
		m.releases++
		if m.owner == owner {
			m.owner = ""
		}
	})
}

// prune is dedupe's floor: what sweeps met in their turn is forgotten once it is
// settled.
func (m *memory) prune() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range m.claims {
		if c.swept && c.sequence <= m.pos.Settled {
			if m.floor == 0 {
				m.from = c.sequence
			}
			m.from, m.floor = min(m.from, c.sequence), max(m.floor, c.sequence)
			delete(m.claims, id)
		}
	}
}

func (m *memory) look(read func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	read()
}
