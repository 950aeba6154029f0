package doctor

import (
	"errors"
	"time"

	"github.com/replywake/replywake/events"
)

// sweep says whether everything is being received.
func (e *examination) sweep() {
	if e.storeErr != nil {
		e.find(Warning, StoreUnavailable, "The store does not answer%s: the log has its error.", reason(e.storeErr))
	}
	e.trouble()
	e.received()
	e.memories()
}

// reason is what may be said of a store's error: a driver's names host and
// user.
func reason(err error) string {
	if errors.Is(err, events.ErrForeignStream) {
		return ", because the stream's name belongs to another project or environment"
	}
	return ""
}

// remedies are by who can mend a sweep.
var remedies = map[events.Trouble]string{
	events.TroubleCredential: "the provider refuses the key: replace it (it is tried every 5 minutes)",
	events.TroubleRequest:    "the provider refuses what it asks for: look at the log, mend that and start again",
	events.TroubleQuota:      "a limit of the provider is reached: sweep less often or raise it",
	events.TroubleService:    "the provider or the network fails: it goes on by itself",
	events.TroubleStore:      "the store, or the handler, does not take what it reads: look at the log",
}

func (e *examination) trouble() {
	h := e.health
	if h.Trouble == events.TroubleNone {
		return
	}
	level := Warning
	if h.Trouble == events.TroubleService && !h.Stopped {
		level = Note // being behind is the warning
	}
	e.find(level, SweepFailing, "The last %s of the sweep failed, %s.", several(h.Failures, "try", "tries"), remedies[h.Trouble])
}

// received says up to when everything is here.
func (e *examination) received() {
	through, now := e.health.Through, e.report.At
	if d := e.report.Doors; d != nil {
		through, now = d.Through, d.Now
	}
	switch {
	case e.config.Sweeper == nil && e.report.Doors == nil: // nothing to go by
	case through.IsZero() && e.config.Sweeper == nil:
		e.find(Note, NoSweeper, "Nothing has swept this stream, so what webhooks miss stays lost: run an events.Sweeper.")
	case through.IsZero():
		e.find(Warning, SweepBehind, "No sweep has reached the head yet: if that lasts, look at the log.")
	case now.Sub(through) > e.config.MaxAge:
		e.find(Warning, SweepBehind, "Nothing was received for %s, since %s: see that a sweeper runs and what its log says.",
			now.Sub(through).Round(time.Second), moment(through))
	default:
		e.find(OK, SweepOK, "Everything up to %s has been received.", moment(through))
	}
}

// recent is how long a single event of the past is worth more than a note.
const recent = 7 * day

const day = 24 * time.Hour

// memories are what happened once and may still be for a person to mend.
func (e *examination) memories() {
	d := e.report.Doors
	if d == nil {
		return
	}
	if l := d.Loss; l != nil {
		level := Note
		if d.Now.Sub(l.At) < recent {
			level = Warning
		}
		e.find(level, EventsLost, "On %s the provider no longer had %s: look in its inboxes for mail of that time.", moment(l.At), gone(*l))
	}
	if t := d.CredentialChanged; !t.IsZero() && d.Now.Sub(t) < recent {
		e.find(Note, CredentialChanged,
			"The key was replaced on %s: if it sees more inboxes than the one before, their earlier events lie behind the cursor, for Sweeper.SweepFrom.",
			moment(t))
	}
}

func gone(l events.Loss) string {
	if l.Oldest == 0 {
		return "any event after " + l.Cursor.String()
	}
	return "the events between " + l.Cursor.String() + " and " + l.Oldest.String()
}

// handling is what became of the events that were received.
func (e *examination) handling() {
	d := e.report.Doors
	if d == nil {
		return
	}
	if d.Failed > 0 {
		e.find(Warning, EventsFailed, "The handler failed on %s for good: mend it and Inbox.Retry them, or Inbox.Discard them.", d.counted(d.Failed, "event", "events"))
	}
	if d.Parked > 0 {
		e.find(Note, EventsParked, "The handler fails on %s, which are tried again: Inbox.Parked has the errors.", d.counted(d.Parked, "event", "events"))
	}
	if d.Unreadable > 0 {
		e.find(Note, DeliveriesUnreadable, "The body of %s was genuine and is no event: see whether the endpoint is meant for this program.", d.counted(d.Unreadable, "delivery", "deliveries"))
	}
	if d.Failed+d.Parked+d.Unreadable == 0 {
		e.find(OK, HandlingOK, "The handler took every event.")
	}
}
