package events

import "time"

// Report says what a sweep did.
type Report struct {
	Result // of all its commits

	Pages   int
	Commits int
	From    Cursor // where it began
	Through Cursor // the last sequence committed; 0 if none
	Head    bool   // it reached the head
	Loss    *Loss  // what it found to be gone; nil for nothing
}

// Loss is a stretch of events that expired before they were received.
type Loss struct {
	Cursor Cursor    `json:"cursor,string"` // the last position that was received
	Oldest Cursor    `json:"oldest,string"` // the oldest event that remains; 0 if none does
	At     time.Time `json:"at"`
}

func (r *Result) add(o Result) {
	r.Fresh += o.Fresh
	r.Duplicate += o.Duplicate
	r.Parked += o.Parked
	r.Skipped += o.Skipped
}
