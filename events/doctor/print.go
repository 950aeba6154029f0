package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// String is the finding on one line.
func (f Finding) String() string { return fmt.Sprintf("%-7s  %s: %s", f.Level, f.Code, f.Text) }

// String is the report for a terminal: the findings, and then the figures.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", plain(r.Stream), moment(r.At))
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	w := table{tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	r.writePositions(w)
	r.writeInboxes(w)
	r.writePush(w)
	r.writeEndpoints(w)
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// table aligns the cells of rows that follow one another.
type table struct{ *tabwriter.Writer }

func (t table) head(cells ...any) {
	_, _ = fmt.Fprintln(t)
	t.row(cells...)
}

func (t table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			_, _ = fmt.Fprint(t, "\t")
		}
		_, _ = fmt.Fprint(t, c)
	}
	_, _ = fmt.Fprintln(t)
}

func (r Report) writePositions(t table) {
	d := r.Doors
	if d == nil {
		return
	}
	t.head("cursor", "settled", "attached", "received through", "parked", "failed", "unreadable")
	t.row(d.Cursor, d.Settled, d.Attached, moment(d.Through), d.Parked, d.Failed, d.Unreadable)
}

const mostRows = 20

func (r Report) writeInboxes(t table) {
	if r.Doors == nil || len(r.Doors.Inboxes) == 0 {
		return
	}
	list := r.Doors.Inboxes
	t.head("inbox", "both doors", "sweep only", "push only", "unmet", "floor")
	for _, in := range list[:min(len(list), mostRows)] {
		t.row(name(in.Inbox), in.Both, in.SweepOnly, in.PushOnly, in.Unmet, in.Floor)
	}
	if more := len(list) - mostRows; more > 0 {
		t.row(fmt.Sprintf("and %d more", more))
	}
}

func (r Report) writePush(t table) {
	if c := r.Push; c != nil {
		t.head("webhooks", "fresh", "duplicate", "parked", "unverified", "unreadable", "unavailable")
		t.row("of this process", c.Fresh, c.Duplicate, c.Parked, c.Unverified, c.Unreadable, c.Unavailable)
	}
	if len(r.Secrets) > 0 {
		t.head("secret", "verified", "last", "until")
	}
	for _, s := range r.Secrets {
		t.row(plain(s.Version), s.Verified, moment(s.Last), moment(s.Until))
	}
}

func (r Report) writeEndpoints(t table) {
	if len(r.Endpoints) == 0 {
		return
	}
	t.head("endpoint", "secret version", "deliveries", "given up", "cancelled", "recovered", "missing")
	for _, to := range r.Endpoints {
		t.row(plain(to.ID), name(to.SecretVersion), len(to.Deliveries), to.GivenUp.Total, to.Canceled.Total,
			to.GivenUp.BySweep+to.Canceled.BySweep, to.GivenUp.Missing+to.Canceled.Missing)
	}
}

// name is plain, and a dash for nothing.
func name(s string) string {
	if s == "" {
		return "-"
	}
	return plain(s)
}

// plain is a name that came from outside, fit for a terminal.
func plain(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
