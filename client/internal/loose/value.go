package loose

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Value is one value as a checked text has it, to the byte, without white space
// around it. Nil is none.
type Value []byte

// Object is the value if it is an object.
func (v Value) Object() Object {
	if v.kind() != '{' {
		return nil
	}
	o := make(Object, 0, 8)
	for l := (level{text: v, at: 1}); l.more(); {
		name := l.next()
		l.more()
		o = append(o, field{name: name.name(), value: l.next()})
	}
	return o
}

func (v Value) list() (rows []Value, ok bool) {
	if v.kind() != '[' {
		return nil, false
	}
	for l := (level{text: v, at: 1}); l.more(); {
		rows = append(rows, l.next())
	}
	return rows, true
}

// Text is the value if it is a string. What has escapes or is not UTF-8 is
// encoding/json's to read.
func (v Value) Text() string {
	switch {
	case v.kind() != '"':
		return ""
	case v.isPlain():
		return string(v.inner())
	}
	var s string
	_ = json.Unmarshal(v, &s) // cannot fail: it is a string
	return s
}

// name is Text without a copy, where it can be.
func (v Value) name() []byte {
	if v.isPlain() {
		return v.inner()
	}
	return []byte(v.Text())
}

func (v Value) inner() []byte { return v[1 : len(v)-1] }

func (v Value) isPlain() bool { return bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) }

// Scalar is the value if it is a string, or a number as it is written.
func (v Value) Scalar() string {
	if c := v.kind(); c == '-' || '0' <= c && c <= '9' {
		return string(v)
	}
	return v.Text()
}

// kind is the first character, which tells a value's type; 0 if there is none.
func (v Value) kind() byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}
