package agentmail

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
)

// object is a JSON object whose fields are read one by one, by their exact
// names: one field of an unexpected type empties itself and not its neighbours.
type object map[string]json.RawMessage

func (o object) object(name string) object {
	var inner object
	_ = json.Unmarshal(o[name], &inner) // another type leaves it empty
	return inner
}

func (o object) text(name string) string { return textOf(o[name]) }

func textOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func (o object) time(name string) time.Time {
	t, err := time.Parse(time.RFC3339, o.text(name))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// about is the one object that tells what the event is about.
func (o object) about() object {
	for _, name := range []string{"message", "send", "delivery", "bounce", "complaint", "reject"} {
		if inner := o.object(name); inner != nil {
			return inner
		}
	}
	return nil
}

// addresses reads a text, an object with "email" or "address", or an array of
// these.
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
	if parsed, err := mail.ParseAddress(text); err == nil && strings.ContainsAny(text, "<(") {
		return parsed.Address
	}
	return text
}

// isID: 1 to 256 visible ASCII characters.
func isID(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
