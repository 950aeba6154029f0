package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// tidy makes an event's fields what every store can keep. Senders choose some
// of them (a Message-ID), and Postgres refuses text with a NUL: such an event
// would fail for ever and hold up those behind it. So does one too long for an
// index; in its place stands a hash, which names as well and reads nothing.
// Both doors do it, so that an event has one ID at both.
func tidy(ev Event) Event {
	if ev.Kind == "" {
		ev.Kind = KindUnknown
	}
	for _, field := range []*string{&ev.ID, &ev.Type, &ev.Inbox, &ev.Thread, &ev.Message, &ev.Approval} {
		*field = indexable(storable(*field))
	}
	return ev
}

// longestName lets an index of Postgres, 2,704 bytes wide, hold two.
const longestName = 1024

func indexable(s string) string {
	if len(s) <= longestName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func storable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
