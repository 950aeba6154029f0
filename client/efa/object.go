package efa

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
)

var errUnencodable = errors.New("cannot be written as JSON")

// object is a JSON object whose fields are read one by one, by their exact
// names: one field of an unexpected type empties itself and not its
// neighbours, and a name in other letters is another name.
type object map[string]json.RawMessage

func (o object) object(name string) object {
	var inner object
	_ = json.Unmarshal(o[name], &inner) // another type leaves it empty
	return inner
}

// list is a field that must be there and be an array: an answer without it is
// not the documented one, and must not pass for an empty list.
func (o object) list(name string) ([]json.RawMessage, bool) {
	var rows []json.RawMessage
	if err := json.Unmarshal(o[name], &rows); err != nil || rows == nil {
		return nil, false
	}
	return rows, true
}

// flag is a field that must be there and be a boolean.
func (o object) flag(name string) (value, ok bool) {
	var b *bool
	if err := json.Unmarshal(o[name], &b); err != nil || b == nil {
		return false, false
	}
	return *b, true
}

// text is a string, or a number as it is written.
func (o object) text(name string) string { return textOf(o[name]) }

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if n, ok := numberOf(raw); ok {
		return n
	}
	return ""
}

func numberOf(raw json.RawMessage) (string, bool) {
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil {
		return "", false
	}
	return n.String(), true
}

// texts is an array of strings.
func (o object) texts(name string) []string {
	rows, _ := o.list(name)
	list := make([]string, len(rows))
	for i, row := range rows {
		list[i] = textOf(row)
	}
	return list
}

// id is a text that can be an identifier; one that cannot is left empty, so
// that nothing downstream stores a line break or a zero byte as a key.
func (o object) id(name string) string {
	if s := o.text(name); isID(s) {
		return s
	}
	return ""
}

// isID: 1 to 256 visible ASCII characters, as in the header of a push.
func isID(s string) bool {
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

// number is a whole number, or a string of one; 0 where it is neither.
func (o object) number(name string) int64 {
	n, err := strconv.ParseInt(o.text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// time is the first of the names that holds an RFC 3339 time.
func (o object) time(names ...string) time.Time {
	for _, name := range names {
		if t, err := time.Parse(time.RFC3339, o.text(name)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

func (o object) untrusted(name string) client.Untrusted { return client.NewUntrusted(o.text(name)) }

// addresses reads a string, an object with "email" or "address", or an array
// of these.
func (o object) addresses(name string) []client.Untrusted {
	raw := bytes.TrimSpace(o[name])
	rows := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		_ = json.Unmarshal(raw, &rows)
	}
	var list []client.Untrusted
	for _, row := range rows {
		if address := addressOf(row); address != "" {
			list = append(list, client.NewUntrusted(address))
		}
	}
	return list
}

func addressOf(raw json.RawMessage) string {
	var fields object
	if json.Unmarshal(raw, &fields) == nil && fields != nil {
		if email := fields.text("email"); email != "" {
			return bare(email)
		}
		return bare(fields.text("address"))
	}
	return bare(textOf(raw))
}

// bare drops a display name. What is not one address stays as it is, and so
// equals no address.
func bare(text string) string {
	if !strings.ContainsAny(text, "<(") {
		return text
	}
	if parsed, err := mail.ParseAddress(text); err == nil {
		return parsed.Address
	}
	return text
}

// sender is the one address of a field. Of several none can stand for the
// message, so all of them together do, which equal no address.
func (o object) sender(name string) client.Untrusted {
	list := o.addresses(name)
	if len(list) == 1 {
		return list[0]
	}
	texts := make([]string, len(list))
	for i, address := range list {
		texts[i] = address.Text()
	}
	return client.NewUntrusted(strings.Join(texts, ", "))
}
