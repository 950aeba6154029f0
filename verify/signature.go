package verify

import "crypto/subtle"

const (
	// A rotation needs two signatures and Svix may send a few more. The limits
	// keep a forger from buying work with a long header.
	maxCandidates     = 32
	maxSignatureBytes = 4 << 10

	versionSize = 8
	encodedSize = 44 // a MAC in base64
)

// candidates are the well-formed v1 signatures of a request.
type candidates struct {
	n    int
	macs [maxCandidates]mac
}

// read takes all values of the signature header. Proxies merge header lines
// with commas and gateways cut one line at its commas, so the values are one
// list of tokens, read in pairs of version and value.
func (c *candidates) read(f *field) error {
	if c.readOne(f) {
		return nil
	}
	if f.size() > maxSignatureBytes {
		return because(ErrMalformedSignature, "longer than 4096 bytes")
	}
	var scan pairScanner
	for _, values := range f.spellings() {
		if err := scan.values(values, c); err != nil {
			return err
		}
	}
	switch {
	case c.n > 0:
		return nil
	case scan.pairs == 0:
		return because(ErrMalformedSignature, "empty")
	case scan.v1:
		return because(ErrMalformedSignature, "a v1 signature is 32 bytes in standard base64")
	}
	return because(ErrNoMatch, "no signature of version v1")
}

// readOne takes the short way for the usual header, one v1 signature.
func (c *candidates) readOne(f *field) bool {
	const prefix = "v1,"
	if f.n != 1 || len(f.lists[0]) != 1 {
		return false
	}
	value := f.lists[0][0]
	if len(value) != len(prefix)+encodedSize || value[:len(prefix)] != prefix {
		return false
	}
	return c.decode(value[len(prefix):])
}

// match compares the computed MAC with every candidate in constant time.
func (c *candidates) match(sum *mac) bool {
	for i := range c.n {
		if subtle.ConstantTimeCompare(c.macs[i][:], sum[:]) == 1 {
			return true
		}
	}
	return false
}

// add keeps a v1 value. One that cannot be a MAC matches nothing and spoils
// nothing: others of the list may be good.
func (c *candidates) add(value string) error {
	if len(value) == encodedSize && c.n == maxCandidates {
		return because(ErrMalformedSignature, "more than 32 v1 signatures")
	}
	c.decode(value)
	return nil
}

func (c *candidates) decode(value string) bool {
	if len(value) != encodedSize {
		return false
	}
	var buf [macSize + 1]byte // one more, for a text that lacks its padding
	n, err := strictBase64.Decode(buf[:], []byte(value))
	if err != nil || n != macSize {
		return false
	}
	c.macs[c.n] = mac(buf[:])
	c.n++
	return true
}

// pairScanner walks tokens and pairs them.
type pairScanner struct {
	pairs int
	v1    bool // a v1 pair was seen, well-formed or not
}

func (s *pairScanner) values(values []string, c *candidates) error {
	version := ""
	for _, value := range values {
		for token, rest := cutToken(value); token != ""; token, rest = cutToken(rest) {
			if isVersion(token) != (version == "") {
				return because(ErrMalformedSignature, "a version without a value or a value without a version")
			}
			if version == "" {
				version = token
				continue
			}
			if err := s.pair(version, token, c); err != nil {
				return err
			}
			version = ""
		}
	}
	if version != "" {
		return because(ErrMalformedSignature, "a version without a value")
	}
	return nil
}

// pair skips versions it does not know: a sender may add new ones beside v1.
func (s *pairScanner) pair(version, value string, c *candidates) error {
	s.pairs++
	if version != "v1" {
		return nil
	}
	s.v1 = true
	return c.add(value)
}

// cutToken splits off the first run of bytes that are not separators.
func cutToken(s string) (token, rest string) {
	start := 0
	for start < len(s) && isSeparator(s[start]) {
		start++
	}
	end := start
	for end < len(s) && !isSeparator(s[end]) {
		end++
	}
	return s[start:end], s[end:]
}

func isSeparator(b byte) bool { return b == ',' || b == ' ' || b == '\t' }

// isVersion reports whether a token is a version name: v, digits, then lower-case
// letters, as in v1 and v1a. No MAC in base64 is that short.
func isVersion(token string) bool {
	if len(token) < 2 || len(token) > versionSize || token[0]|0x20 != 'v' {
		return false
	}
	i := 1
	for i < len(token) && '0' <= token[i] && token[i] <= '9' {
		i++
	}
	digits := i - 1
	for i < len(token) && 'a' <= token[i] && token[i] <= 'z' {
		i++
	}
	return digits > 0 && i == len(token)
}
