package events

import "github.com/replywake/replywake/verify"

// Profile reads the [Event] out of a verified push. A provider's package has
// one (efa.Profile); for any other sender it is a function of your own.
//
// An error means that the body is genuine but not an event. It should wrap
// [ErrNotEvent], and then its text is logged, so it must not quote the body; of
// any other error only the type is. A panic counts as an error. An unknown type is no error: return KindUnknown. The ID must
// be the one that the same event has at the pull door. Stream and Sequence are
// filled by others.
type Profile func(d verify.Delivery, body []byte) (Event, error)
