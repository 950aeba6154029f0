package loose

import (
	"net/mail"
	"strings"

	"github.com/replywake/replywake/client"
)

// Addresses reads a text, an object with "email" or "address", or an array of
// these. text is what counts as one: [Value.Text] or [Value.Scalar].
func (o Object) Addresses(name string, text func(Value) string) []client.Untrusted {
	var list []client.Untrusted
	for _, v := range o.Several(name) {
		if address := Bare(addressIn(v, text)); address != "" {
			list = append(list, client.NewUntrusted(address))
		}
	}
	return list
}

func addressIn(v Value, text func(Value) string) string {
	fields := v.Object()
	if fields == nil {
		return text(v)
	}
	if email := text(fields.Get("email")); email != "" {
		return email
	}
	return text(fields.Get("address"))
}

// Bare drops a display name. What is not one address stays as it is, and so
// equals no address.
func Bare(text string) string {
	if !strings.ContainsAny(text, "<(") {
		return text
	}
	if parsed, err := mail.ParseAddress(text); err == nil {
		return parsed.Address
	}
	return text
}
