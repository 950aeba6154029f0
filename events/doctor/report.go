package doctor

import (
	"time"

	"github.com/replywake/replywake/events"
)

// Report is what a [Doctor] saw at one moment: what to do, and the figures it
// goes by. It encodes as JSON, and prints for a terminal.
type Report struct {
	Stream   string    `json:"stream"`
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"` // the worst first; one at least of every part

	Doors *Doors `json:"doors,omitempty"` // what the store knows; nil if it does not answer

	// The push door of this process since it began; nil without one.
	Push    *events.HandlerCounts `json:"push,omitempty"`
	Secrets []events.SecretUse    `json:"secrets,omitempty"`

	Endpoints []Endpoint `json:"endpoints,omitempty"` // what the provider lists

	SkewSeconds int64     `json:"skew_seconds"`        // the provider's clock minus ours
	ClockRead   time.Time `json:"clock_read,omitzero"` // when; zero if the provider has not told its time
}

// Finding is one thing worth saying.
type Finding struct {
	Level Level  `json:"level"`
	Code  Code   `json:"code"`
	Text  string `json:"text"` // one sentence, with what to do about it
}

// Worst is the highest level of the findings.
func (r Report) Worst() Level {
	if len(r.Findings) == 0 {
		return OK
	}
	return r.Findings[0].Level
}
