package loose_test

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"strconv"
	"strings"
	"time"
)

// reference is the same reading with encoding/json alone, which checks every
// part of a text again: slow, and nobody's opinion but its own.
type reference map[string]json.RawMessage

func parseReference(text []byte) (reference, error) {
	var fields reference
	err := json.Unmarshal(text, &fields)
	return fields, err
}

func (r reference) object(name string) reference { return objectIn(r[name]) }

func objectIn(raw json.RawMessage) reference {
	var inner reference
	_ = json.Unmarshal(raw, &inner)
	return inner
}

func (r reference) list(name string) ([]json.RawMessage, bool) {
	var rows []json.RawMessage
	if err := json.Unmarshal(r[name], &rows); err != nil || rows == nil {
		return nil, false
	}
	return rows, true
}

func (r reference) several(name string) []json.RawMessage {
	if raw := bytes.TrimSpace(r[name]); len(raw) > 0 && raw[0] == '[' {
		var rows []json.RawMessage
		_ = json.Unmarshal(raw, &rows)
		return rows
	}
	return []json.RawMessage{r[name]}
}

func (r reference) flag(name string) (value, ok bool) {
	var b *bool
	if err := json.Unmarshal(r[name], &b); err != nil || b == nil {
		return false, false
	}
	return *b, true
}

func textIn(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func scalarIn(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil {
		return ""
	}
	return n.String()
}

func (r reference) id(name string) string {
	s := scalarIn(r[name])
	if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return s
}

func (r reference) number(name string) int64 {
	n, err := strconv.ParseInt(scalarIn(r[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r reference) time(names ...string) time.Time {
	for _, name := range names {
		if t, err := time.Parse(time.RFC3339, scalarIn(r[name])); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

func (r reference) addresses(name string, text func(json.RawMessage) string) []string {
	var list []string
	for _, row := range r.several(name) {
		if address := addressIn(row, text); address != "" {
			list = append(list, address)
		}
	}
	return list
}

func addressIn(raw json.RawMessage, text func(json.RawMessage) string) string {
	if fields := objectIn(raw); fields != nil {
		if email := text(fields["email"]); email != "" {
			return bare(email)
		}
		return bare(text(fields["address"]))
	}
	return bare(text(raw))
}

func bare(text string) string {
	if parsed, err := mail.ParseAddress(text); err == nil && strings.ContainsAny(text, "<(") {
		return parsed.Address
	}
	return text
}
