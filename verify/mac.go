package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
	"time"
)

const (
	macSize    = sha256.Size
	prefixSize = maxID + len(".") + maxTimestamp + len(".")
)

type mac = [macSize]byte

// key computes MACs with one secret. A keyed hash state costs three allocations
// and two block operations to make and may serve one goroutine at a time, so
// states are pooled. The key itself lives in the pool's constructor, out of
// reach of anything that prints.
type key struct {
	version  string
	numbered bool      // it has no name of the caller's
	until    time.Time // zero: no end
	since    time.Time // when the Verifier got it, under this version
	states   sync.Pool // of *state
}

// state is a keyed hash with the buffers that would otherwise escape to the
// heap through the hash.Hash interface.
type state struct {
	hash   hash.Hash
	prefix [prefixSize]byte
	sum    mac
}

func newKey(raw []byte, version string, until time.Time) *key {
	k := &key{version: version, until: until}
	k.states.New = func() any { return &state{hash: hmac.New(sha256.New, raw)} }
	return k
}

// is reports whether both sign alike: they are of one secret.
func (k *key) is(o *key) bool { return k.sign("", "", nil) == o.sign("", "", nil) }

// live reports whether the secret may still verify; its last instant counts.
func (k *key) live(now time.Time) bool {
	return k.until.IsZero() || !now.After(k.until)
}

// sign computes the MAC over id, timestamp and body exactly as received: the
// header texts are what the sender signed, not what we would write in their place.
func (k *key) sign(id, timestamp string, body []byte) mac {
	s := k.states.Get().(*state)
	prefix := append(s.prefix[:0], id...)
	prefix = append(prefix, '.')
	prefix = append(prefix, timestamp...)
	prefix = append(prefix, '.')
	s.hash.Reset()
	s.hash.Write(prefix)
	s.hash.Write(body)
	s.hash.Sum(s.sum[:0])
	sum := s.sum
	k.states.Put(s)
	return sum
}
