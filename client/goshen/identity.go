package goshen

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	idReceived = "received"
	idDelivery = "delivery"
	idBounce   = "bounce"
	idOther    = "other"

	maxEventID = 256 // as long as a delivery's ID can be
)

// eventID names an event by what it is about: "kind:part:part", in visible
// ASCII. What could be taken for a separator or cannot be seen is written as
// "%XX", so different parts give different IDs. One that becomes too long is
// "kind:%:" and a hash; no other ID has a bare "%" there.
func eventID(kind string, parts ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, part := range parts {
		b.WriteByte(':')
		escapeInto(&b, part)
	}
	if b.Len() <= maxEventID {
		return b.String()
	}
	sum := sha256.Sum256([]byte(b.String()))
	return kind + ":%:" + hex.EncodeToString(sum[:])
}

func escapeInto(b *strings.Builder, s string) {
	const digits = "0123456789ABCDEF"
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '%' || c == ':' {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
			continue
		}
		b.WriteByte(c)
	}
}
