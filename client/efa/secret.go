package efa

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a signing secret that the provider shows once. It prints as a
// placeholder under every verb, in JSON and in slog. Its text goes into a
// secret store, and into verify.RawSecret: the key is the text's own bytes.
type Secret struct {
	reveal func() string // a func: printers that follow pointers stop at it
}

func newSecret(text string) Secret { return Secret{reveal: func() string { return text }} }

// Reveal is the secret's text; empty for the zero value.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

const secretPlaceholder = "efa.Secret(hidden)"

// String is a placeholder.
func (s Secret) String() string { return secretPlaceholder }

// Format writes the placeholder, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretPlaceholder) }

// MarshalJSON writes the placeholder.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(secretPlaceholder) }

// LogValue is the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(secretPlaceholder) }
