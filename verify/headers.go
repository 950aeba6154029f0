package verify

import (
	"net/http"
	"slices"
	"strings"
)

// The headers that sign a delivery. A family is one prefix with all three parts.
const (
	webhookID = iota
	webhookTimestamp
	webhookSignature
	svixID
	svixTimestamp
	svixSignature
	headerCount

	partCount = 3
)

var headerNames = [headerCount]string{
	"webhook-id", "webhook-timestamp", "webhook-signature",
	"svix-id", "svix-timestamp", "svix-signature",
}

// canonicalNames are the spellings of net/http, compared first.
var canonicalNames = [headerCount]string{
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
	"Svix-Id", "Svix-Timestamp", "Svix-Signature",
}

// headers are the signing headers of one request.
type headers [headerCount]field

// maxSpellings bounds how often one header may stand in a map under keys that
// differ in case. net/http never does that; hand-made maps and gateways may.
const maxSpellings = 2

// field is all values of one header.
type field struct {
	lists [maxSpellings][]string
	n     int
}

func (f *field) spellings() [][]string { return f.lists[:min(f.n, maxSpellings)] }

// gather looks at every key of the map. Looking up the canonical spelling
// alone would be blind to a second one.
func (hs *headers) gather(h http.Header) {
	for name, values := range h {
		i := headerIndex(name)
		if i < 0 {
			continue
		}
		f := &hs[i]
		if f.n < maxSpellings {
			f.lists[f.n] = values
		}
		f.n++
	}
}

// headerIndex tells the six headers apart by length and one letter, so that the
// other headers of a request, which are the most, cost next to nothing. Equal
// lengths also keep letters outside ASCII that fold to ASCII ones from matching.
func headerIndex(name string) int {
	i := 0
	switch len(name) {
	case len("webhook-id"):
		i = webhookID
	case len("webhook-timestamp"):
		i = webhookTimestamp + oneIf(name[len("webhook-")], 's')
	case len("svix-id"):
		i = svixID
	case len("svix-timestamp"):
		i = svixTimestamp + oneIf(name[len("svix-")], 's')
	default:
		return -1
	}
	if name == canonicalNames[i] || strings.EqualFold(name, headerNames[i]) {
		return i
	}
	return -1
}

// oneIf is 1 if a letter is the wanted one in either case, else 0.
func oneIf(letter, want byte) int {
	if letter|0x20 == want {
		return 1
	}
	return 0
}

// family picks the headers to verify by. An incomplete family beside a complete
// one is ignored, as a relay that signs anew may leave parts of the old one.
func (hs *headers) family() (*[partCount]field, error) {
	webhook, svix := (*[partCount]field)(hs[webhookID:]), (*[partCount]field)(hs[svixID:])
	switch {
	case !complete(webhook) && !complete(svix):
		return nil, because(ErrMissingHeader, hs.missing())
	case !complete(webhook):
		return svix, nil
	case complete(svix) && !sameFamily(webhook, svix):
		return nil, because(ErrAmbiguousHeader, "webhook-* and svix-* are both complete and differ")
	}
	return webhook, nil
}

func complete(family *[partCount]field) bool {
	return family[0].present() && family[1].present() && family[2].present()
}

func sameFamily(a, b *[partCount]field) bool {
	for i := range a {
		// With several spellings the order of values is the map's, which has none.
		if a[i].n != 1 || b[i].n != 1 || !slices.Equal(a[i].lists[0], b[i].lists[0]) {
			return false
		}
	}
	return true
}

// missing names what was looked for, in the family that is nearer to complete.
func (hs *headers) missing() string {
	webhook, svix := hs.absent(webhookID), hs.absent(svixID)
	switch {
	case len(webhook) == partCount && len(svix) == partCount:
		return "looked for webhook-id, webhook-timestamp and webhook-signature, or the same with svix-"
	case len(svix) < len(webhook):
		return "looked for " + strings.Join(svix, " and ")
	}
	return "looked for " + strings.Join(webhook, " and ")
}

func (hs *headers) absent(first int) []string {
	var names []string
	for i := first; i < first+partCount; i++ {
		if !hs[i].present() {
			names = append(names, headerNames[i])
		}
	}
	return names
}

// present reports whether any value is more than nothing.
func (f *field) present() bool {
	for _, values := range f.spellings() {
		for _, value := range values {
			if value != "" {
				return true
			}
		}
	}
	return false
}

// size is the length of all values joined with commas.
func (f *field) size() int {
	n := 0
	for _, values := range f.spellings() {
		for _, value := range values {
			n += len(value) + 1
		}
	}
	return n
}

// only returns the one value of a header that must not have two.
func (f *field) only() (value string, ok bool) {
	seen := false
	for _, values := range f.spellings() {
		for _, other := range values {
			if seen && other != value {
				return "", false
			}
			value, seen = other, true
		}
	}
	return value, f.n <= maxSpellings
}
