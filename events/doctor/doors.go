package doctor

import (
	"context"
	"time"

	"github.com/replywake/replywake/events"
)

// Inbox is what a [Doctor] asks the store. dedupe.Inbox is one.
type Inbox interface {
	Stream() events.Stream

	// Doors reads what the store knows of both doors, at a bounded cost.
	Doors(ctx context.Context) (Doors, error)

	// Known says of event IDs whether they are known, and of those whether a
	// sweep has met them. An ID that is not in the map is not known.
	Known(ctx context.Context, ids []string) (swept map[string]bool, err error)
}

// Doors is what the store knows of both doors, whichever process received it.
// Times are by the store's clock. Counts end at a limit, so they are for "none",
// "some" and "many".
type Doors struct {
	Now      time.Time     `json:"now"`
	Known    bool          `json:"known"` // a position is stored
	Cursor   events.Cursor `json:"cursor,string"`
	Settled  events.Cursor `json:"settled,string"`   // where a sweep begins
	Attached events.Cursor `json:"attached,string"`  // what lies at or below it is history
	Through  time.Time     `json:"through,omitzero"` // everything up to it has been received

	// Since is when the stream was attached or last lost events: of what
	// happened before, no sweep may know. Zero if sweeps know everything.
	Since time.Time `json:"since,omitzero"`

	// Remembers is how long an event's ID is known at least; 0 is for ever.
	Remembers time.Duration `json:"-"`

	Loss              *events.Loss `json:"loss,omitempty"` // the last one
	CredentialChanged time.Time    `json:"credential_changed,omitzero"`

	Parked     int `json:"parked"`     // events tried again when due
	Failed     int `json:"failed"`     // events given up: a person decides
	Unreadable int `json:"unreadable"` // deliveries whose body is not an event

	Inboxes []InboxDoors `json:"inboxes"` // by name
	Sample  int          `json:"sample"`  // how many of the newest events of each kind were counted at most
}

// InboxDoors says which door brought the newest events of an inbox.
type InboxDoors struct {
	Inbox     string `json:"inbox"`
	Both      int    `json:"both"`       // a webhook brought them and a sweep met them
	SweepOnly int    `json:"sweep_only"` // no webhook brought them
	PushOnly  int    `json:"push_only"`  // no sweep has met them

	// Unmet are those of PushOnly that sweeps passed by: one that began an hour
	// or more after them reached the head. Those that came within a day of Since
	// do not count: a provider goes on trying that long.
	Unmet  int       `json:"unmet"`
	Oldest time.Time `json:"oldest_unmet,omitzero"` // when the oldest of them came

	Swept bool          `json:"swept"`               // a sweep has met events of this inbox
	Met   time.Time     `json:"newest_met,omitzero"` // when the newest event came that a sweep met
	Floor events.Cursor `json:"floor,string"`        // the highest sequence of which the ID is forgotten, as handled
}
