package goshen

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
)

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

func (o object) flag(name string) bool {
	var b bool
	_ = json.Unmarshal(o[name], &b)
	return b
}

func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s)
	return s
}

func (o object) texts(name string) []string {
	var list []string
	for _, row := range first(o.list(name)) {
		var s string
		if json.Unmarshal(row, &s) == nil && s != "" {
			list = append(list, s)
		}
	}
	return list
}

func first[T any](v T, _ bool) T { return v }

// number is a positive whole number; 0 where it is none.
func (o object) number(name string) int64 {
	n, err := strconv.ParseInt(string(o[name]), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// time is an RFC 3339 time in UTC, zero where it is none.
func (o object) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339, o.text(name))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func (o object) untrusted(name string) client.Untrusted { return client.NewUntrusted(o.text(name)) }

func (o object) untrustedList(name string) []client.Untrusted {
	texts := o.texts(name)
	list := make([]client.Untrusted, len(texts))
	for i, text := range texts {
		list[i] = client.NewUntrusted(text)
	}
	return list
}

// hasControl says whether a text has a character that breaks or rewrites a
// line.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
	})
}

func isName(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !hasControl(s)
}
