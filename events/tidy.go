package events

import (
	"strings"
	"unicode/utf8"
)

// tidy makes an event's fields what every store can keep. Senders choose some
// of them (a Message-ID), and Postgres refuses text with a NUL: such an event
// would fail for ever and hold up those behind it. Both doors do it, so that
// an event has one ID at both.
func tidy(ev Event) Event {
	if ev.Kind == "" {
		ev.Kind = KindUnknown
	}
	for _, field := range []*string{&ev.ID, &ev.Type, &ev.Inbox, &ev.Thread, &ev.Message, &ev.Approval} {
		*field = storable(*field)
	}
	return ev
}

func storable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
