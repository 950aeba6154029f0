package client

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Clock is the provider's clock beside ours, by the Date header of its newest
// answer. It compares with the middle of the request, when the answer was made
// as far as anybody can tell.
type Clock struct {
	Skew   time.Duration // the provider's clock minus ours, to a second
	Within time.Duration // how far off Skew may be: a Date is cut to a second, and the answer took its time
	At     time.Time     // when the answer came, by our clock; zero if none had a Date
}

// Clock is the newest reading.
func (t *Transport) Clock() Clock {
	if c := t.clock.Load(); c != nil {
		return *c
	}
	return Clock{}
}

// reading holds the newest one.
type reading struct{ atomic.Pointer[Clock] }

func (r *reading) take(began time.Time, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	took := time.Since(began)
	half := took / 2
	r.Store(&Clock{
		Skew:   date.Add(time.Second / 2).Sub(began.Add(half)).Round(time.Second),
		Within: time.Second + half,
		At:     began.Add(took),
	})
}
