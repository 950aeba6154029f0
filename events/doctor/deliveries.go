package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
)

// fates asks the store for the events of the deliveries that will not come.
func (e *examination) fates(ctx context.Context) {
	doors := e.report.Doors
	swept, err := e.known(ctx)
	if err != nil {
		doors, e.storeErr = nil, err
		e.log.LogAttrs(ctx, slog.LevelWarn, "doctor: the store does not answer", slog.Any("error", err))
	}
	for i := range e.report.Endpoints {
		to := &e.report.Endpoints[i]
		for j := range to.Deliveries {
			d := &to.Deliveries[j]
			if tally := to.tally(d.State); tally != nil {
				d.Event = doors.fate(*d, swept)
				tally.add(d.Event)
			}
		}
	}
}

func (e *examination) known(ctx context.Context) (map[string]bool, error) {
	var ids []string
	for i := range e.report.Endpoints {
		to := &e.report.Endpoints[i]
		for _, d := range to.Deliveries {
			if to.tally(d.State) != nil {
				ids = append(ids, d.EventID)
			}
		}
	}
	if len(ids) == 0 || e.report.Doors == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.config.Inbox.Known(ctx, ids)
}

// tally is where a delivery's event counts; nil if the delivery came or will.
func (to *Endpoint) tally(s DeliveryState) *Tally {
	switch s {
	case GivenUp:
		return &to.GivenUp
	case Canceled:
		return &to.Canceled
	}
	return nil
}

func (t *Tally) add(f Fate) {
	t.Total++
	*map[Fate]*int{BySweep: &t.BySweep, ByPush: &t.ByPush, Waiting: &t.Waiting, Missing: &t.Missing, Untold: &t.Untold}[f]++
}

// passed is how much later than a delivery a sweep must have begun to have
// shown its event: longer than the look-back, and than clocks may differ.
const passed = 5 * time.Minute

// fate is what became of a delivery's event.
func (d *Doors) fate(of Delivery, swept map[string]bool) Fate {
	bySweep, known := swept[of.EventID]
	switch {
	case d == nil:
		return Untold
	case bySweep:
		return BySweep
	case known:
		return ByPush
	case of.At.IsZero(), of.At.Before(d.Since), d.forgot(of.At):
		return Untold
	case d.Known && d.Through.Before(of.At.Add(passed)):
		return Waiting
	}
	return Missing
}

// forgot says whether an event of that time may have come, and its ID have been
// deleted since.
func (d *Doors) forgot(t time.Time) bool {
	margin := min(day, d.Remembers/2) // before its delivery the event itself was seen
	return d.Remembers > 0 && d.Now.Sub(t) > d.Remembers-margin
}

// deliveries says what the provider could not bring.
func (e *examination) deliveries() {
	_, lists := e.config.Provider.(Lister)
	switch {
	case !lists:
		e.find(OK, NoListing, "What became of deliveries is not known: there is no listing of the provider's to look at.")
		return
	case e.listErr != nil:
		e.unlisted()
		return
	case len(e.report.Endpoints) == 0:
		e.noEndpoint()
		return
	}
	before, total := len(e.report.Findings), 0
	for _, to := range e.report.Endpoints {
		e.endpoint(to)
		total += len(to.Deliveries)
	}
	if len(e.report.Findings) == before {
		e.find(OK, DeliveriesOK, "Of the provider's newest %s none was given up or cancelled.", several(total, "delivery", "deliveries"))
	}
}

func (e *examination) unlisted() {
	refusal, answered := errors.AsType[*client.Error](e.listErr)
	switch {
	case client.ClassOf(e.listErr) != client.ClassCredential:
	case answered && refusal.Status == http.StatusUnauthorized:
		e.find(Note, ListingRefused, "The provider refuses the key, so what became of deliveries is not known: check the key.")
		return
	default:
		e.find(Note, ListingRefused, "The key may not list deliveries: give it the scope for that (webhooks:read at Email for Agents).")
		return
	}
	text := ""
	if answered && refusal.Status > 0 {
		text = fmt.Sprintf(" (HTTP %d)", refusal.Status)
	}
	e.find(Note, ProviderUnavailable, "The provider did not list its deliveries%s: ask again later.", text)
}

func (e *examination) noEndpoint() {
	if e.config.Handler == nil {
		e.find(OK, DeliveriesOK, "The provider sends no webhooks.")
		return
	}
	e.find(Warning, NoEndpoint, "The provider knows no endpoint to send webhooks to: register one, or rely on the sweep alone.")
}

func (e *examination) endpoint(to Endpoint) {
	if to.Disabled {
		e.find(Warning, EndpointDisabled, "The endpoint %s is disabled: no webhook comes until a person enables it, and the sweep brings what was missed.", plain(to.ID))
	}
	if n := to.GivenUp.Total; n > 0 {
		level, advice := to.GivenUp.level(), "see why the door did not answer 2xx"
		if to.refused() > 0 {
			level, advice = Warning, "let nothing before the door answer 4xx, and the Verifier's FailStatus be 503 while secrets change"
		}
		e.find(level, DeliveriesGivenUp, "The provider gave up on %d of the newest %s to %s (%s): %s; %s.",
			n, several(len(to.Deliveries), "delivery", "deliveries"), plain(to.ID), to.answers(), to.GivenUp.text(), advice)
	}
	if n := to.Canceled.Total; n > 0 {
		e.find(to.Canceled.level(), DeliveriesCanceled, "A rotation, or a switch, cancelled %s to %s: %s.",
			several(n, "delivery", "deliveries"), plain(to.ID), to.Canceled.text())
	}
}

func (t Tally) level() Level {
	if t.Missing > 0 {
		return Warning
	}
	return Note
}

// text is what became of the events.
func (t Tally) text() string {
	var parts []string
	for _, p := range []struct {
		n      int
		format string
	}{
		{t.BySweep, "the cursor recovered %d"},
		{t.ByPush, "another webhook brought %d"},
		{t.Waiting, "%d come with the next sweep"},
		{t.Missing, "%d are missing (tests, or of inboxes that the key does not see; else sweep from an earlier cursor)"},
		{t.Untold, "what became of %d is not known"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf(p.format, p.n))
		}
	}
	return strings.Join(parts, ", ")
}

// refused counts the deliveries that one answer ended.
func (to Endpoint) refused() (n int) {
	for _, d := range to.Deliveries {
		if d.State == GivenUp && d.Final {
			n++
		}
	}
	return n
}

// answers are the last answers of the deliveries that were given up, by class.
func (to Endpoint) answers() string {
	counts := map[string]int{}
	for _, d := range to.Deliveries {
		if d.State == GivenUp {
			counts[d.class()]++
		}
	}
	var parts []string
	for _, class := range []string{"3xx", "final 4xx", "4xx", "5xx", "no answer"} {
		if n := counts[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d × %s", n, class))
		}
	}
	return strings.Join(parts, ", ")
}

func (d Delivery) class() string {
	switch {
	case d.Final:
		return "final 4xx"
	case d.Status >= 300 && d.Status < 600:
		return fmt.Sprintf("%dxx", d.Status/100)
	}
	return "no answer"
}
