package resend

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

// addresses reads an address or an array of them, without display names.
func (o object) addresses(name string) []string {
	raw := bytes.TrimSpace(o[name])
	rows := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		_ = json.Unmarshal(raw, &rows)
	}
	var list []string
	for _, row := range rows {
		if text := textOf(row); text != "" {
			list = append(list, bare(text))
		}
	}
	return list
}

// bare drops a display name. What is not one address stays as it is, and so
// equals no address.
func bare(text string) string {
	if parsed, err := mail.ParseAddress(text); err == nil && strings.ContainsAny(text, "<(") {
		return parsed.Address
	}
	return text
}

// normalized leaves out what is no address.
func normalized(addresses []string) []string {
	var list []string
	for _, address := range addresses {
		if normal, err := client.NormalizeAddress(address); err == nil {
			list = append(list, normal)
		}
	}
	return list
}
