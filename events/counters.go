package events

import "sync/atomic"

// HandlerCounts says what became of the deliveries since the [Handler] was made.
type HandlerCounts struct {
	Fresh       int64 `json:"fresh"`       // handed over and committed
	Duplicate   int64 `json:"duplicate"`   // seen before
	Parked      int64 `json:"parked"`      // the program's handler fails on them
	Unverified  int64 `json:"unverified"`  // not proven genuine
	Unreadable  int64 `json:"unreadable"`  // genuine, and not an event
	Unavailable int64 `json:"unavailable"` // the store could not take them
}

// Counts are the counts so far, for metrics and health pages.
func (h *Handler) Counts() HandlerCounts {
	c := &h.counters
	return HandlerCounts{
		Fresh:       c.fresh.Load(),
		Duplicate:   c.duplicate.Load(),
		Parked:      c.parked.Load(),
		Unverified:  c.unverified.Load(),
		Unreadable:  c.unreadable.Load(),
		Unavailable: c.unavailable.Load(),
	}
}

type handlerCounters struct {
	fresh, duplicate, parked, unverified, unreadable, unavailable atomic.Int64
}
