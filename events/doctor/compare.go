package doctor

import (
	"slices"
	"strings"
	"time"
)

// doors compares what the two doors brought.
func (e *examination) doors() {
	d := e.report.Doors
	if d == nil {
		return
	}
	if !e.sequenced() {
		e.find(OK, DoorsOK, "The doors cannot be compared: no sweep has met an event with a number, and others bear no trace of it.")
		return
	}
	before := len(e.report.Findings)
	suspect, unswept := e.unmet()
	e.passedBy(suspect, unswept)
	e.silent()
	if len(e.report.Findings) == before {
		e.find(OK, DoorsOK, "No sweep has passed a webhook by.")
	}
}

// sequenced is also true of a stream that another process sweeps, once that
// has met anything.
func (e *examination) sequenced() bool {
	if s := e.config.Sweeper; s != nil {
		return s.Sequenced()
	}
	return e.report.Doors.Cursor > 0
}

// acts says whether the program acts on an inbox.
func (e *examination) acts(inbox string) bool {
	return inbox != "" && (len(e.config.Inboxes) == 0 || slices.Contains(e.config.Inboxes, inbox))
}

// unmet are the inboxes of which sweeps passed webhooks by: those that a sweep
// has met before, and those that none has. Tests have no inbox.
func (e *examination) unmet() (suspect, unswept []InboxDoors) {
	for _, in := range e.report.Doors.Inboxes {
		switch {
		case in.Unmet == 0 || !e.acts(in.Inbox):
		case in.Swept:
			suspect = append(suspect, in)
		default:
			unswept = append(unswept, in)
		}
	}
	return suspect, unswept
}

func (e *examination) passedBy(suspect, unswept []InboxDoors) {
	d, foreign := e.report.Doors, Warning
	if len(e.config.Inboxes) == 0 {
		foreign = Note // nobody said that they are ours
	}
	if len(suspect) > 0 {
		e.find(Warning, CursorSuspect,
			"The cursor is suspect: sweeps that reached the head passed by %s of %s that came by webhook: see whether the key still sees the inbox, and sweep from an earlier cursor.",
			d.many(suspect), names(suspect))
	}
	all := slices.Concat(suspect, unswept)
	switch first := oldest(all); {
	case len(all) == 0:
	case !e.metSince(first):
		level := foreign
		if len(suspect) > 0 {
			level = Warning
		}
		e.find(level, SweepsEmpty,
			"Webhooks arrive while sweeps stay empty: %s of %s since %s, and no sweep has met any event since: see whether the key is of the same project and sees these inboxes.",
			d.many(all), names(all), moment(first))
	case len(unswept) > 0:
		e.find(foreign, InboxUnswept,
			"No sweep has ever met %s, of which %s came by webhook: if the key does not see the inbox, what webhooks miss of it stays lost.",
			names(unswept), d.many(unswept))
	}
}

// metSince says whether a sweep has met an event that came at t or later.
func (e *examination) metSince(t time.Time) bool {
	return slices.ContainsFunc(e.report.Doors.Inboxes, func(in InboxDoors) bool { return !in.Met.Before(t) && !in.Met.IsZero() })
}

// silentFrom is how many events must have come without any webhook: a sweep
// may be the faster door for one.
const silentFrom = 10

// silent is a push door that nobody knocks at.
func (e *examination) silent() {
	bySweep := 0
	for _, in := range e.report.Doors.Inboxes {
		if in.Both+in.PushOnly > 0 {
			return
		}
		bySweep += in.SweepOnly
	}
	if e.config.Handler != nil && bySweep >= silentFrom {
		e.find(Note, PushSilent, "The newest %s came by the sweep alone: see whether the webhook is registered and reaches this program.", several(bySweep, "event", "events"))
	}
}

func (d *Doors) many(list []InboxDoors) string {
	n := 0
	for _, in := range list {
		n += in.Unmet
	}
	return d.counted(n, "event", "events")
}

// counted is a number of things that were counted up to a limit.
func (d *Doors) counted(n int, one, more string) string {
	if d.Sample > 0 && n >= d.Sample {
		return "at least " + several(n, one, more)
	}
	return several(n, one, more)
}

func oldest(list []InboxDoors) time.Time {
	var t time.Time
	for _, in := range list {
		if t.IsZero() || in.Oldest.Before(t) {
			t = in.Oldest
		}
	}
	return t
}

const mostNames = 5

func names(list []InboxDoors) string {
	var some []string
	for _, in := range list[:min(len(list), mostNames)] {
		some = append(some, plain(in.Inbox))
	}
	text := strings.Join(some, ", ")
	if more := len(list) - len(some); more > 0 {
		text += " and " + several(more, "other", "others")
	}
	return text
}
