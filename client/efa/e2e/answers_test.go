package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
)

// answer is what the provider answers once instead of a page.
type answer struct {
	fault   efatest.Fault
	is      error // found in the sweep's error
	status  int   // of the client.Error in it; 0 for none
	trouble events.Trouble

	requests int // for one page that get it; 0 is 1
}

func refused(status int, code string, trouble events.Trouble) answer {
	return answer{fault: efatest.Fault{Status: status, Code: code}, status: status, trouble: trouble}
}

func says(body string, is error) answer {
	a := answer{fault: efatest.Fault{Garbage: body}, is: is, trouble: events.TroubleService}
	if is == client.ErrBadAnswer { //nolint:errorlint // which one was given
		a.status = http.StatusOK
	}
	return a
}

// to is the answer to so many requests for one page: it is asked for in parts.
func (a answer) to(requests int) answer {
	a.requests = requests
	return a
}

func cut(f efatest.Fault) answer {
	return answer{fault: f, is: client.ErrUnavailable, trouble: events.TroubleService}
}

// rows are a page of the documented shape.
func rows(more bool, sequences ...string) string {
	var list []string
	for _, s := range sequences {
		list = append(list, `{"id":"evt_x`+s+`","type":"message.received","sequence":`+s+`,"data":{"inbox_id":"ibx_main"}}`)
	}
	return `{"data":[` + strings.Join(list, ",") + `],"next_cursor":null,"has_more":` + strconv.FormatBool(more) + `}`
}

var answers = map[string]answer{
	"401":                  refused(401, "", events.TroubleCredential),
	"403":                  refused(403, "", events.TroubleCredential),
	"403 by a proxy":       {fault: efatest.Fault{Status: 403, Garbage: "<html>denied</html>"}, status: 403, trouble: events.TroubleCredential},
	"404":                  refused(404, "", events.TroubleRequest),
	"400":                  refused(400, "invalid_request", events.TroubleRequest),
	"400 for the cursor":   {fault: efatest.Fault{Status: 400, Code: "invalid_cursor"}, is: events.ErrCursorInvalid, status: 400, trouble: events.TroubleRequest},
	"410 by a proxy":       {fault: efatest.Fault{Status: 410, Garbage: "gone"}, status: 410, trouble: events.TroubleRequest},
	"402":                  refused(402, "payment_required", events.TroubleQuota),
	"429":                  {fault: efatest.Fault{Status: 429, RetryAfter: 7 * time.Second}, status: 429, trouble: events.TroubleQuota},
	"500":                  refused(500, "", events.TroubleService),
	"502 by a proxy":       {fault: efatest.Fault{Status: 502, Garbage: "<html>"}, status: 502, trouble: events.TroubleService},
	"503":                  refused(503, "", events.TroubleService),
	"504":                  refused(504, "", events.TroubleService),
	"302":                  {fault: efatest.Fault{Status: 302, Garbage: "<html>"}, is: client.ErrBadAnswer, status: 302, trouble: events.TroubleService},
	"garbage":              says("\x00\xff<html>", client.ErrBadAnswer),
	"no body":              says(" ", client.ErrBadAnswer),
	"half a page":          says(rows(true, "900", "901")[:70], client.ErrBadAnswer),
	"a list":               says(`[]`, client.ErrBadAnswer),
	"null":                 says(`null`, client.ErrBadAnswer),
	"no data":              says(`{"next_cursor":null,"has_more":false}`, client.ErrBadAnswer),
	"null for data":        says(`{"data":null,"has_more":false}`, client.ErrBadAnswer),
	"no has_more":          says(`{"data":[],"next_cursor":null}`, client.ErrBadAnswer),
	"an event without ID":  says(`{"data":[{"sequence":900,"type":"message.received"}],"has_more":false}`, client.ErrBadAnswer),
	"without a sequence":   says(`{"data":[{"id":"evt_x","type":"message.received"}],"has_more":false}`, client.ErrBadAnswer),
	"sequence 0":           says(rows(false, "0"), client.ErrBadAnswer),
	"a negative sequence":  says(rows(false, "-900"), client.ErrBadAnswer),
	"20 digits":            says(rows(false, "12345678901234567890"), client.ErrBadAnswer),
	"a huge page":          says(`{"data":[`+strings.Repeat(" ", 5<<20)+`],"has_more":false}`, client.ErrBadAnswer).to(3),
	"empty, and more":      says(rows(true), events.ErrNoProgress),
	"the oldest page":      says(rows(true, "1", "2", "3"), events.ErrNoProgress),
	"a sequence that sank": says(rows(false, "1"), events.ErrNoProgress),
	"cut before":           cut(efatest.Fault{Drop: efatest.DropRequest}),
	"cut after":            cut(efatest.Fault{Drop: efatest.DropAnswer}),
	"cut in the body":      cut(efatest.Fault{Drop: efatest.DropMidBody}),
	"slow to answer":       cut(efatest.Fault{Delay: time.Minute}),
	"slow in the body":     cut(efatest.Fault{SlowBody: time.Minute}),
}

// Of pages only: Head asks for one event and takes the first.
var pageAnswers = map[string]answer{
	"falling sequences": says(rows(false, "900", "902", "901"), events.ErrNoProgress),
	"one event twice":   says(rows(true, "900", "900"), events.ErrNoProgress),
}

// stages are where a sweeper stands when it gets the answer.
var stages = []struct {
	name  string
	skip  int // requests that go well before
	start events.Start
}{
	{"attaching", 0, events.FromNow},
	{"attaching for a while", 5, events.FromNow},
	{"at the first page", 0, events.FromBeginning},
	{"at a later page", 1, events.FromBeginning},
}

// One bad answer, whatever it is and whenever it comes: a typed error that says
// who can mend it, nothing moved but by the pages before, and nothing lost.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		for i, stage := range stages {
			if raceEnabled && s.pool == nil && i > 0 && i < len(stages)-1 {
				continue // SQLite is written in Go, and ten times slower under the race detector
			}
			for name, a := range answers {
				t.Run(name+" "+stage.name, func(t *testing.T) {
					t.Parallel()
					total.fault(name + " " + stage.name)
					if stage.start == events.FromNow {
						a.whileAttaching(t, s, stage.skip)
					} else {
						a.whileSweeping(t, s, stage.skip)
					}
				})
			}
		}
		for name, a := range pageAnswers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				total.fault(name)
				a.whileSweeping(t, s, 1)
			})
		}
	})
}

// impatient is short where the answer is slow, and long enough where it is not.
func (a answer) impatient() time.Duration {
	if a.fault.Delay+a.fault.SlowBody > 0 {
		return 200 * time.Millisecond
	}
	return 0
}

func (a answer) arm(w *world, skip int) *efatest.Armed {
	a.fault.Op, a.fault.When = efatest.OpEvents, efatest.When{Skip: skip, Times: a.requests}
	return w.srv.Fault(a.fault)
}

func (a answer) check(t *testing.T, err error, h events.Health) {
	t.Helper()
	require.ErrorIs(t, err, events.Err)
	if a.is != nil {
		require.ErrorIs(t, err, a.is)
	}
	require.Equal(t, a.trouble, h.Trouble)
	require.Equal(t, a.fault.RetryAfter, client.RetryAfter(err))
	for _, text := range []string{"html", "evt_x", "a fault of the test"} {
		require.NotContains(t, err.Error(), text, "what the provider says is not printed")
	}
	if a.status > 0 {
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, a.status, e.Status)
	}
}

func (a answer) whileAttaching(t *testing.T, s *store, skip int) {
	w := begin(t, s, setup{start: events.FromNow, timeout: a.impatient()})
	w.mail(6, quiet)
	p := w.process(t)
	armed := a.arm(w, skip)
	_, err := p.sweep()
	armed.Disarm()
	a.check(t, err, p.sweeper.Health())
	require.LessOrEqual(t, w.srv.Count(efatest.OpEvents), skip+1, "no loop")
	pos := w.position(t, p)
	require.False(t, pos.Known, "not attached anywhere by mistake")

	w.timeout = 0
	p = w.process(t)
	report, err := p.sweep()
	require.NoError(t, err)
	require.Zero(t, report.Fresh)
	w.mail(3, quiet)
	p.end(t)
	require.Equal(t, stood{cursor: 9, settled: 9, attached: 6}, w.stands(t, p))
}

func (a answer) whileSweeping(t *testing.T, s *store, skip int) {
	w := begin(t, s, setup{page: 4, timeout: a.impatient()})
	w.mail(4, quiet)
	p := w.process(t)
	for range 2 { // the second finds what the first saw to be settled
		_, err := p.sweep()
		require.NoError(t, err)
		require.NoError(t, w.pass(3*time.Minute))
	}
	w.mail(10, quiet)
	through := w.position(t, p).Through
	asked, armed := w.srv.Count(efatest.OpEvents), a.arm(w, skip)

	report, err := p.sweep()
	a.check(t, err, p.sweeper.Health())
	require.Equal(t, max(a.requests, 1), armed.Hits())
	require.Equal(t, skip+max(a.requests, 1), w.srv.Count(efatest.OpEvents)-asked, "no loop")
	require.Equal(t, 4*skip, report.Fresh, "what came before it, and nothing of it")
	require.False(t, report.Head)
	require.Equal(t, stood{cursor: events.Cursor(4 + 4*skip), settled: 4}, w.stands(t, p))
	require.WithinDuration(t, through, w.position(t, p).Through, 0, "not received through now")

	w.timeout = 0
	w.process(t).end(t)
	require.Equal(t, stood{cursor: 14, settled: 14}, w.stands(t, p))
}

// stood is where a stream stands, without its times.
type stood struct{ cursor, settled, attached events.Cursor }

func (w *world) position(t *testing.T, p *process) events.Position {
	t.Helper()
	pos, err := p.inbox.Position(t.Context())
	require.NoError(t, err)
	return pos
}

func (w *world) stands(t *testing.T, p *process) stood {
	t.Helper()
	pos := w.position(t, p)
	return stood{pos.Cursor, pos.Settled, pos.Attached}
}

// A 400 will be the same at every try: Run stops, loudly.
func TestRunStopsAtABadRequest(t *testing.T) {
	t.Parallel()
	total.fault("400 under Run")
	onBoth(t, func(t *testing.T, s *store) {
		w := begin(t, s, setup{})
		w.mail(3, quiet)
		p := w.process(t)
		w.srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: 400})
		err := p.sweeper.Run(t.Context())
		require.ErrorIs(t, err, events.Err)
		require.True(t, p.sweeper.Health().Stopped)
		p.end(t)
	})
}

// A single 5xx in a while is the client's own matter.
func TestAFewServiceErrorsAreNotSeen(t *testing.T) {
	t.Parallel()
	total.fault("a few 503")
	onBoth(t, func(t *testing.T, s *store) {
		w := begin(t, s, setup{page: 3, tries: 3})
		w.mail(10, quiet)
		p := w.process(t)
		w.srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: 503, When: efatest.When{Skip: 1, Times: 2}})
		report, err := p.sweep()
		require.NoError(t, err)
		require.Equal(t, 10, report.Fresh)
		p.end(t)
	})
}

// Large is not too large: every page that the provider documents is read.
func TestLargePages(t *testing.T) {
	t.Parallel()
	total.fault("large pages")
	onBoth(t, func(t *testing.T, s *store) {
		w := begin(t, s, setup{})
		for i := range 120 {
			w.srv.Emit(efatest.Event{Type: efatest.MessageReceived, Inbox: w.srv.Inbox(), Data: map[string]any{
				"inbox_id": w.srv.Inbox(), "message_id": fmt.Sprint("msg_", i), "note": strings.Repeat("x", 30<<10),
			}})
		}
		p := w.process(t)
		report, err := p.sweep()
		require.NoError(t, err)
		require.Equal(t, 120, report.Fresh)
		p.end(t)
	})
}
