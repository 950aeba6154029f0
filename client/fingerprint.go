package client

import (
	"crypto/sha256"
	"encoding/hex"
)

// Fingerprint names a key without giving it away: the first 12 hexadecimal
// digits of a SHA-256 of it. Two keys can be told apart by it, and no key can
// be found from it as long as keys are random.
func Fingerprint(key string) string {
	sum := sha256.Sum256([]byte("replywake/client/key/v1\x00" + key))
	return hex.EncodeToString(sum[:6])
}
