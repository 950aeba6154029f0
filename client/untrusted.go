package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
)

// Untrusted is text that somebody outside wrote: a body, a subject, an
// address. Every verb of fmt, JSON and slog print only its length, also where
// it is nested in an unexported field, so it cannot reach a log or an error by
// accident. Ask for it by name: [Untrusted.Text] for the text as it is,
// [Untrusted.Quoted] for text to put before a model.
//
// It does not come back from the JSON that it prints as. Two of it cannot be
// compared with ==; compare their texts. The zero value is empty text.
type Untrusted struct {
	_    incomparable
	text *string // a pointer: fmt does not follow it inside other structs
}

// incomparable turns == on a pointer's holder, which would be false for equal
// texts, into an error of the compiler.
type incomparable [0]func()

// NewUntrusted marks text as untrusted.
func NewUntrusted(text string) Untrusted { return Untrusted{text: &text} }

// Text is the text as it was written.
func (u Untrusted) Text() string {
	if u.text == nil {
		return ""
	}
	return *u.text
}

// Len is the length of the text in bytes.
func (u Untrusted) Len() int { return len(u.Text()) }

func (u Untrusted) placeholder() string {
	return "untrusted(" + strconv.Itoa(u.Len()) + " bytes)"
}

// String is the placeholder.
func (u Untrusted) String() string { return u.placeholder() }

// Format writes the placeholder, whatever the verb.
func (u Untrusted) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(u.placeholder())) }

// MarshalJSON writes the placeholder. To store or send the text, take
// [Untrusted.Text].
func (u Untrusted) MarshalJSON() ([]byte, error) { return json.Marshal(u.placeholder()) }

// LogValue is the placeholder.
func (u Untrusted) LogValue() slog.Value { return slog.StringValue(u.placeholder()) }

// UnmarshalJSON reads a JSON string; null is empty text.
func (u *Untrusted) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("client: text: %w", errNotString)
	}
	*u = NewUntrusted(text)
	return nil
}

var errNotString = errors.New("not a JSON string")

// Raw is an event's data as it came. It prints like [Untrusted]: only its
// length.
type Raw struct {
	_    incomparable
	data *string // not *[]byte, which fmt follows inside other structs under some verbs
}

// NewRaw keeps a copy of b.
func NewRaw(b []byte) Raw {
	data := string(b)
	return Raw{data: &data}
}

// Bytes are the bytes as they came, a copy of the caller's own.
func (r Raw) Bytes() []byte {
	if r.data == nil {
		return nil
	}
	return []byte(*r.data)
}

// Len is the number of bytes.
func (r Raw) Len() int {
	if r.data == nil {
		return 0
	}
	return len(*r.data)
}

func (r Raw) placeholder() string { return "raw(" + strconv.Itoa(r.Len()) + " bytes)" }

// String is the placeholder.
func (r Raw) String() string { return r.placeholder() }

// Format writes the placeholder, whatever the verb.
func (r Raw) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(r.placeholder())) }

// MarshalJSON writes the placeholder.
func (r Raw) MarshalJSON() ([]byte, error) { return json.Marshal(r.placeholder()) }

// LogValue is the placeholder.
func (r Raw) LogValue() slog.Value { return slog.StringValue(r.placeholder()) }
