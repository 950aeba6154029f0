package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/verify"
)

// book is a store that says what it is told to.
type book struct {
	doors           doctor.Doors
	known           map[string]bool
	err, errOfKnown error
}

func (b *book) Stream() events.Stream                       { return events.Stream{Name: "mail"} }
func (b *book) Doors(context.Context) (doctor.Doors, error) { return b.doors, b.err }
func (b *book) Known(context.Context, []string) (map[string]bool, error) {
	return b.known, b.errOfKnown
}

// silent is a provider without a listing.
type silent struct{ clock client.Clock }

func (s *silent) Clock() client.Clock { return s.clock }

// lister is one that has it.
type lister struct {
	silent
	endpoints []doctor.Endpoint
	err       error
}

func (l *lister) Endpoints(context.Context) ([]doctor.Endpoint, error) { return l.endpoints, l.err }

var errStore = errors.New("dial tcp db.example:5432: user ann")

func newDoctor(t *testing.T, c doctor.Config) *doctor.Doctor {
	t.Helper()
	d, err := doctor.New(c)
	require.NoError(t, err)
	return d
}

func report(t *testing.T, c doctor.Config) doctor.Report {
	t.Helper()
	return newDoctor(t, c).Report(t.Context())
}

// found are the findings as "level code", but for those of parts that are well
// or not there.
func found(r doctor.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		if f.Level != doctor.OK {
			list = append(list, string(f.Level)+" "+string(f.Code))
		}
	}
	return list
}

func text(t *testing.T, r doctor.Report, code doctor.Code) string {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			return f.Text
		}
	}
	require.Fail(t, "no such finding", "%s in\n%s", code, r)
	return ""
}

// healthy is a store with nothing to say of it: received through a minute ago.
func healthy() doctor.Doors {
	now := time.Now()
	return doctor.Doors{
		Now: now, Known: true, Cursor: 900, Settled: 890, Through: now.Add(-time.Minute), Remembers: 7 * 24 * time.Hour,
		Inboxes: []doctor.InboxDoors{{Inbox: "ibx_1", Both: 5, Swept: true, Met: now.Add(-2 * time.Hour)}},
	}
}

// taker is a store that takes everything.
type taker struct{ events.Receiver }

func (taker) Push(context.Context, events.Event) (events.Result, error) {
	return events.Result{Fresh: 1}, nil
}

func secretOf(n int) verify.Secret {
	return verify.RawSecret(fmt.Sprintf("%032d", n)).Version(fmt.Sprintf("v%d", n))
}

// newHandler is a push door with these secrets.
func newHandler(t *testing.T, secrets ...verify.Secret) *events.Handler {
	t.Helper()
	v, err := verify.New(verify.Config{Secrets: secrets})
	require.NoError(t, err)
	h, err := events.NewHandler(v, func(d verify.Delivery, _ []byte) (events.Event, error) {
		return events.Event{ID: d.ID}, nil
	}, taker{}, events.HandlerConfig{})
	require.NoError(t, err)
	return h
}

// deliver sends a webhook that a secret signs.
func deliver(t *testing.T, h http.Handler, s verify.Secret) {
	t.Helper()
	header, err := verify.Sign(s, "evt_1", time.Now(), []byte("{}"))
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	r.Header = header
	h.ServeHTTP(httptest.NewRecorder(), r)
}
