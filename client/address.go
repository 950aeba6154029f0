package client

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"strings"
	"unicode/utf8"
)

// ErrAddress says that a text is not one e-mail address. Errors that wrap it never quote the text.
var ErrAddress = errors.New("not an e-mail address")

const (
	maxAddressText = 4096 // a display name may stand around the address
	maxAddress     = 320  // 64 + "@" + 255
	maxLabel       = 63
)

// NormalizeAddress is the form of an address under which two are compared:
// without a display name or comment, ASCII letters in lower case, the domain
// as IDNA A-labels ("xn--…"), without a final dot. Dots and plus tags stay, for
// only the owner of a domain knows what they mean there.
//
// It maps a domain by lower case and the three other IDNA full stops only;
// Unicode normalisation would need golang.org/x/net/idna, which lies outside
// this package's dependencies. What is not mapped differs afterwards too, so an
// unusual spelling can miss a match and never make a false one.
func NormalizeAddress(text string) (string, error) {
	local, domain, err := splitAddress(text)
	if err != nil {
		return "", err
	}
	if domain, err = asciiDomain(domain); err != nil {
		return "", err
	}
	quoted := (&mail.Address{Address: lowerASCII(local) + "@" + domain}).String()
	address := strings.TrimSuffix(strings.TrimPrefix(quoted, "<"), ">")
	if len(address) > maxAddress {
		return "", fmt.Errorf("client: %w: over %d bytes", ErrAddress, maxAddress)
	}
	return address, nil
}

func splitAddress(text string) (local, domain string, err error) {
	if len(text) > maxAddressText || !utf8.ValidString(text) {
		return "", "", fmt.Errorf("client: %w: over %d bytes or not UTF-8", ErrAddress, maxAddressText)
	}
	parsed, err := addressParser.Parse(text)
	if err != nil { // its text quotes the input
		return "", "", fmt.Errorf("client: %w", ErrAddress)
	}
	at := strings.LastIndexByte(parsed.Address, '@')
	local, domain = parsed.Address[:at], parsed.Address[at+1:]
	if local == "" || domain == "" {
		return "", "", fmt.Errorf("client: %w: an empty part", ErrAddress)
	}
	return local, domain, nil
}

// The parser decodes display names, which nobody reads here: an unknown
// charset must not make an address unreadable.
var addressParser = mail.AddressParser{WordDecoder: &mime.WordDecoder{
	CharsetReader: func(_ string, r io.Reader) (io.Reader, error) { return r, nil },
}}

func asciiDomain(domain string) (string, error) {
	if strings.HasPrefix(domain, "[") { // an address literal
		return lowerASCII(domain), nil
	}
	domain = strings.TrimSuffix(fullStops.Replace(strings.ToLower(domain)), ".")
	labels := strings.Split(domain, ".")
	for i, label := range labels {
		ascii, err := aLabel(label)
		if err != nil {
			return "", err
		}
		labels[i] = ascii
	}
	return strings.Join(labels, "."), nil
}

// RFC 3490, section 3.1: these separate labels too.
var fullStops = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".")

func aLabel(label string) (string, error) {
	if !isASCII(label) && utf8.RuneCountInString(label) <= maxLabel {
		label = "xn--" + punycode(label)
	}
	if label == "" || len(label) > maxLabel {
		return "", fmt.Errorf("client: %w: a domain label is empty or over %d bytes", ErrAddress, maxLabel)
	}
	return label, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return string(b)
}
