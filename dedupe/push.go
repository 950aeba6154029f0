package dedupe

import (
	"context"
	"runtime"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// queue holds the pushes that wait for the next commit. While there are any,
// one goroutine commits them, group after group; it ends when none is left, so
// there is nothing to close.
type queue struct {
	mu       sync.Mutex
	most     int
	waiting  []*pushed
	open     int // waiting, or in a commit
	flushing bool
}

// pushed is one push that waits for its answer.
type pushed struct {
	event  events.Event
	link   trace.Link
	hook   sqldb.Hook
	answer chan answer // has room for the one answer
}

type answer struct {
	outcome outcome
	err     error
}

// Push is [events.Receiver]. It shares a commit with the pushes that came
// during the last one. The commit has a context of its own: if ctx ends first,
// Push returns and the event may still be committed.
func (in *Inbox) Push(ctx context.Context, ev events.Event) (res events.Result, err error) {
	if ev.ID == "" {
		return res, wrap("push", errNoID)
	}
	if ctx.Err() != nil {
		return res, wrap("push", context.Cause(ctx))
	}
	ev.Stream, ev.ID = in.name(), sqldb.Text(ev.ID)
	p := &pushed{event: ev, link: trace.LinkFromContext(ctx), hook: sqldb.HookOf(ctx), answer: make(chan answer, 1)}
	start, ok := in.queue.add(p)
	if !ok {
		return res, events.ErrBusy
	}
	if start {
		go in.flush() //nolint:contextcheck // a shared commit belongs to no request
	}
	select {
	case a := <-p.answer:
		return a.result()
	case <-ctx.Done():
		return res, wrap("push: the commit may still come", context.Cause(ctx))
	}
}

func (a answer) result() (res events.Result, err error) {
	if a.err != nil {
		return res, wrap("push", a.err)
	}
	*a.outcome.in(&res)++
	if a.outcome == parked {
		err = events.ErrParked
	}
	return res, err
}

// add says whether the caller must start the goroutine that commits, and
// whether there was room.
func (q *queue) add(p *pushed) (start, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open >= q.most {
		return false, false
	}
	q.open++
	q.waiting = append(q.waiting, p)
	start = !q.flushing
	q.flushing = true
	return start, true
}

// more says whether any push waits; without one the goroutine ends. Its hook is
// the first one's.
func (q *queue) more() (hook sqldb.Hook, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting, q.flushing = nil, false
		return nil, false
	}
	return q.waiting[0].hook, true
}

// next takes the next group.
func (q *queue) next(most int) []*pushed {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(most, len(q.waiting))
	group := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return group
}

func (q *queue) done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open -= n
}

func (in *Inbox) flush() {
	ended := false
	defer func() {
		if !ended { // a handler ended its goroutine, which was this one
			go in.flush()
		}
	}()
	for {
		hook, more := in.queue.more()
		if !more {
			break
		}
		in.flushGroup(hook)
	}
	ended = true
}

// flushGroup commits a group and answers each of its pushes. The group is
// gathered once the transaction has begun: who was answered by the last commit
// may have the next event there by then.
func (in *Inbox) flushGroup(hook sqldb.Hook) {
	g := group{}
	p := &part{door: push, gather: func(p *part) {
		runtime.Gosched()
		g.add(p, in.queue.next(in.cfg.GroupSize))
	}}
	err := errAborted
	defer func() {
		p.fill()
		for _, twins := range g {
			in.answer(twins, answer{err: err})
		}
	}()
	ctx := context.Background()
	if hook != nil {
		ctx = sqldb.WithHook(ctx, hook)
	}
	if err = in.open(ctx); err != nil {
		return
	}
	err = errAborted
	err = in.settle(ctx, p, func(p *part, out outcomes) {
		for _, ev := range p.events {
			in.answer(g[ev.ID], answer{outcome: out[ev.ID]})
			delete(g, ev.ID)
		}
	})
}

// group is the pushes of a commit that have no answer yet, by event ID.
type group map[string][]*pushed

func (g group) add(p *part, list []*pushed) {
	for _, one := range list {
		if g[one.event.ID] == nil {
			p.events = append(p.events, one.event)
		}
		g[one.event.ID] = append(g[one.event.ID], one)
		p.links = append(p.links, one.link)
	}
}

// answer answers the pushes of one event. One that came twice in a group is
// fresh once.
func (in *Inbox) answer(twins []*pushed, a answer) {
	in.queue.done(len(twins))
	for _, p := range twins {
		p.answer <- a
		if a.outcome == fresh {
			a.outcome = duplicate
		}
	}
}
