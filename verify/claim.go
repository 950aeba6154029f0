package verify

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxID        = 256
	maxTimestamp = 12
)

// claim is what the headers of a request say, well-formed and fresh, before
// anything is proven.
type claim struct {
	id         string
	timestamp  string // the header's own text, which is what was signed
	seconds    int64
	candidates candidates
}

// claims saves clearing a kilobyte for each request, where the MAC of a small
// body costs only some hundred nanoseconds.
var claims = sync.Pool{New: func() any { return new(claim) }}

func newClaim() *claim { return claims.Get().(*claim) }

// release gives the claim back without the request's strings, which would be
// kept alive by it. Old MACs stay behind, out of reach of n.
func (c *claim) release() {
	c.id, c.timestamp, c.candidates.n = "", "", 0
	claims.Put(c)
}

// read fills a new claim.
func (c *claim) read(h http.Header, now time.Time, tolerance int64) error {
	var hs headers
	hs.gather(h)
	family, err := hs.family()
	if err != nil {
		return err
	}
	if err := c.readID(&family[0]); err != nil {
		return err
	}
	if err := c.readTimestamp(&family[1], now, tolerance); err != nil {
		return err
	}
	if family[2].n > maxSpellings {
		return because(ErrAmbiguousHeader, "the signature header has too many spellings")
	}
	return c.candidates.read(&family[2])
}

func (c *claim) readID(f *field) error {
	id, ok := f.only()
	if !ok {
		return because(ErrAmbiguousHeader, "two ids")
	}
	if !validID(id) {
		return because(ErrMalformedID, "want 1 to 256 visible ASCII bytes without a full stop")
	}
	c.id = id
	return nil
}

// validID refuses the full stop because it separates the parts of the signed
// text: an ID that holds one could be read as another ID and timestamp.
func validID(id string) bool {
	return len(id) <= maxID && strings.IndexByte(id, '.') < 0 && visible(id)
}

func (c *claim) readTimestamp(f *field, now time.Time, tolerance int64) error {
	text, ok := f.only()
	if !ok {
		return because(ErrAmbiguousHeader, "two timestamps")
	}
	seconds, ok := parseTimestamp(text)
	if !ok {
		return malformedTimestamp(text)
	}
	// Twelve digits and the seconds of any time.Time are far from the ends of int64.
	skew := now.Unix() - seconds
	if skew > tolerance || skew < -tolerance {
		return &TimestampError{Skew: skew, Tolerance: tolerance}
	}
	c.timestamp, c.seconds = text, seconds
	return nil
}

// parseTimestamp takes one spelling for each second, so that an accepted
// delivery cannot be sent again under another text of the same time.
func parseTimestamp(text string) (seconds int64, ok bool) {
	if text == "" || len(text) > maxTimestamp || text[0] == '0' {
		return 0, false
	}
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		seconds = seconds*10 + int64(digit)
	}
	return seconds, true
}

func malformedTimestamp(text string) error {
	const millisecondDigits = 13
	if len(text) == millisecondDigits {
		if _, ok := parseTimestamp(text[:maxTimestamp]); ok {
			return because(ErrMalformedTimestamp, "13 characters; milliseconds?")
		}
	}
	return fmt.Errorf("%w: want Unix seconds, 1 to %d digits without sign or leading zero", ErrMalformedTimestamp, maxTimestamp)
}
