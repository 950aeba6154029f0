package doctor

import (
	"time"

	"github.com/replywake/replywake/verify"
)

// skewNoted is a difference that no network explains.
const skewNoted = 30 * time.Second

// clock compares the provider's clock with ours: webhooks are signed by theirs
// and verified by ours.
func (e *examination) clock() {
	if e.config.Provider == nil {
		e.find(OK, ClockUnknown, "The provider's clock is not known: there is no client of it here.")
		return
	}
	c := e.config.Provider.Clock()
	if c.At.IsZero() {
		e.find(OK, ClockUnknown, "The provider has not told its time yet.")
		return
	}
	e.report.SkewSeconds, e.report.ClockRead = int64(c.Skew/time.Second), c.At.UTC()
	tolerance := verify.DefaultTolerance
	if h := e.config.Handler; h != nil {
		tolerance = h.Verifier().Tolerance()
	}
	off := c.Skew.Abs()
	sure := off - (c.Within - time.Second) // without what a slow answer explains
	switch {
	case sure > tolerance/4:
		e.find(Warning, ClockSkew, "Our clock is %s %s the provider's: set it by NTP before webhooks fail, at %s.", off, side(c.Skew), tolerance)
	case sure >= skewNoted:
		e.find(Note, ClockSkew, "Our clock is %s %s the provider's: set it by NTP.", off, side(c.Skew))
	default:
		e.find(OK, ClockOK, "Our clock and the provider's agree to %s.", max(off, time.Second))
	}
}

func side(skew time.Duration) string {
	if skew > 0 {
		return "behind"
	}
	return "ahead of"
}
