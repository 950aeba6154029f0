package events

import (
	"errors"

	"github.com/replywake/replywake/verify"
)

// Profile reads the [Event] out of a verified push. A provider's package has
// one (efa.Profile); for any other sender it is a function of your own.
//
// An error means that the body is genuine but not an event; it should wrap
// [ErrNotEvent]. An unknown type is no error: return KindUnknown. The ID must
// be the one that the same event has at the pull door. Stream and Sequence are
// filled by others.
type Profile func(d verify.Delivery, body []byte) (Event, error)

// ErrNotEvent: a genuine body that is not an event.
var ErrNotEvent = errors.New("events: not an event")
