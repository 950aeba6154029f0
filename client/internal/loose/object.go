// Package loose reads a provider's JSON with tolerance: field by field, for a
// field that is missing or of another type says nothing about its neighbours.
// What is not there, or not what is asked for, reads as empty.
//
// [Parse] and [Decode] have encoding/json check a whole text, once. An [Object]
// and a [Value] are parts of that text: they are walked when they are asked,
// without another check, and last as long as the text is left alone. Every
// string, number and time that they give is a copy and holds nothing of it.
package loose

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/replywake/replywake/client"
)

// Object is a JSON object whose fields are read by their exact names: a name
// in other letters is another name, and of equal names the last counts. What
// is no object is nil and has no fields.
type Object []field

type field struct {
	name  []byte
	value Value
}

var errNotObject = errors.New("not a JSON object")

// Parse reads a text that must be an object, or null: that is nil and no error,
// as with json.Unmarshal.
func Parse(text []byte) (Object, error) {
	if !json.Valid(text) {
		return nil, errNotObject
	}
	v := whole(text)
	o := v.Object()
	if o == nil && string(v) != "null" {
		return nil, errNotObject
	}
	return o, nil
}

// Decode is [Parse] for an answer; its error is a [client.ErrBadAnswer].
func Decode(answer client.Answer) (Object, error) {
	o, err := Parse(answer.Body)
	if err != nil {
		return nil, answer.Bad("not the JSON it should be")
	}
	return o, nil
}

// Get is a field as it is written, nil if there is none.
func (o Object) Get(name string) Value {
	for _, f := range slices.Backward(o) {
		if string(f.name) == name {
			return f.value
		}
	}
	return nil
}

// Object is a field that is an object.
func (o Object) Object(name string) Object { return o.Get(name).Object() }

// List is a field that must be there and be an array: an answer without it is
// not the documented one, and must not pass for an empty list.
func (o Object) List(name string) (rows []Value, ok bool) { return o.Get(name).list() }

// Several are the elements of an array, or the one value that stands in the
// place of one.
func (o Object) Several(name string) []Value {
	v := o.Get(name)
	if rows, ok := v.list(); ok {
		return rows
	}
	return []Value{v}
}

// Flag is a field that must be there and be a boolean.
func (o Object) Flag(name string) (value, ok bool) {
	v := string(o.Get(name))
	return v == "true", v == "true" || v == "false"
}

// Text is a string.
func (o Object) Text(name string) string { return o.Get(name).Text() }

// Untrusted is a string that a stranger wrote.
func (o Object) Untrusted(name string) client.Untrusted { return client.NewUntrusted(o.Text(name)) }

// Scalar is a string, or a number as it is written.
func (o Object) Scalar(name string) string { return o.Get(name).Scalar() }

// ID is a scalar that can be an identifier; one that cannot is left empty, so
// that nothing downstream stores a line break or a zero byte as a key.
func (o Object) ID(name string) string {
	if s := o.Scalar(name); IsID(s) {
		return s
	}
	return ""
}

// IsID wants 1 to 256 visible ASCII characters, as in the header of a push.
func IsID(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Number is a whole number, or a string of one; 0 where it is neither.
func (o Object) Number(name string) int64 {
	n, err := strconv.ParseInt(o.Scalar(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Time is the first of the names that holds an RFC 3339 time, in UTC; zero
// where none does.
func (o Object) Time(names ...string) time.Time {
	for _, name := range names {
		if t, err := time.Parse(time.RFC3339, o.Text(name)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
