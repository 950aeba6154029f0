package verify

import (
	"fmt"
	"time"
)

// Secret is a signing secret with the name of its encoding. The encoding is
// always said by the caller, through [RawSecret] or [Base64Secret], and never
// guessed from the text: a secret of 32 hexadecimal digits is valid base64 too,
// and decodes without an error to a key that verifies nothing.
//
// A Secret prints as a placeholder under every verb and in every encoding.
// The zero Secret is refused by [New].
type Secret struct {
	// The text is held by a closure rather than behind a pointer: printers that
	// follow pointers by reflection, as assertion libraries do when they show a
	// difference, stop at a function.
	reveal  func() (text string, enc encoding)
	until   time.Time
	version string
}

type encoding int

const (
	encodingRaw encoding = iota
	encodingBase64
)

// RawSecret is a secret whose key is the bytes of the text itself, never
// decoded. Email for Agents issues such secrets: 32 hexadecimal digits, used as
// the 32 ASCII characters that they are.
//
// It never fails: what is wrong with the text is reported by [New] and
// [Verifier.SetSecrets], which want at least 16 bytes and no white space or
// quotes around them.
func RawSecret(text string) Secret {
	return newSecret(text, encodingRaw)
}

// Base64Secret is a secret in the form of Standard Webhooks, Svix and Goshen
// Email: standard base64, with padding, of 24 to 75 bytes, after the optional
// prefix "whsec_".
//
// It never fails: what is wrong with the text is reported by [New] and
// [Verifier.SetSecrets].
func Base64Secret(text string) Secret {
	return newSecret(text, encodingBase64)
}

func newSecret(text string, enc encoding) Secret {
	return Secret{reveal: func() (string, encoding) { return text, enc }}
}

// Until returns the secret with an end: it verifies up to and including t, and
// nothing afterwards. Give it to the previous secret of a rotation, so that
// nobody has to remember to remove it.
func (s Secret) Until(t time.Time) Secret {
	s.until = t
	return s
}

// Version returns the secret with a name, 1 to 64 visible ASCII bytes, which
// [Delivery.SecretVersion] reports. Without a name a secret is called by its
// position in [New]: "1", "2" and so on. One that [Verifier.SetSecrets] brings
// gets the next number.
func (s Secret) Version(name string) Secret {
	s.version = name
	return s
}

const (
	secretPlaceholder   = "verify.Secret(hidden)"
	verifierPlaceholder = "verify.Verifier(hidden)"
)

// Format prints a placeholder, whatever the verb and flags.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(secretPlaceholder))
}

// MarshalText gives a placeholder to JSON, XML, slog and the like.
func (s Secret) MarshalText() ([]byte, error) {
	return []byte(secretPlaceholder), nil
}
