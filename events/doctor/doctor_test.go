package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/verify"
)

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	d, err := doctor.New(doctor.Config{MaxAge: -1})
	require.Nil(t, d)
	require.ErrorIs(t, err, doctor.ErrConfig)
	require.ErrorContains(t, err, "nothing to look at")
	require.ErrorContains(t, err, "MaxAge")
}

func TestReportSaysWhichPartsAreNotThere(t *testing.T) {
	t.Parallel()
	r := report(t, doctor.Config{Provider: &silent{}})
	require.Equal(t, doctor.OK, r.Worst())
	var codes []doctor.Code
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	require.Equal(t, []doctor.Code{doctor.NoPushDoor, doctor.NoListing, doctor.ClockUnknown}, codes)

	r = report(t, doctor.Config{Inbox: &book{}})
	require.Equal(t, []string{"note no_sweeper"}, found(r))
}

func TestReportOfAHealthyStream(t *testing.T) {
	t.Parallel()
	h := newHandler(t, secretOf(1))
	deliver(t, h, secretOf(1))
	r := report(t, doctor.Config{
		Inbox: &book{doors: healthy()}, Handler: h,
		Provider: &lister{
			silent:    silent{client.Clock{Within: time.Second, At: time.Now()}},
			endpoints: []doctor.Endpoint{{ID: "whk_1", Deliveries: []doctor.Delivery{{State: doctor.Delivered}}}},
		},
	})
	require.Empty(t, found(r), r)
	require.Equal(t, doctor.OK, r.Worst())
	require.Equal(t, "mail", r.Stream)
	require.EqualValues(t, 1, r.Push.Fresh)
	require.EqualValues(t, 1, r.Secrets[0].Verified)
	for _, code := range []doctor.Code{doctor.SweepOK, doctor.DoorsOK, doctor.HandlingOK, doctor.SecretsOK, doctor.DeliveriesOK, doctor.ClockOK} {
		require.NotEmpty(t, text(t, r, code))
	}
}

// What the store knows, by what it means.
func TestFindingsOfTheStore(t *testing.T) {
	t.Parallel()
	type doors = doctor.Doors
	inboxes := func(list ...doctor.InboxDoors) func(*doors) {
		return func(d *doors) { d.Inboxes = list }
	}
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, c := range map[string]struct {
		change  func(*doors)
		inboxes []string // of the program
		want    []string
	}{
		"all is well":                     {func(*doors) {}, nil, []string{}},
		"behind":                          {func(d *doors) { d.Through = ago(time.Hour) }, nil, []string{"warning sweep_behind"}},
		"nobody sweeps":                   {func(d *doors) { d.Through = time.Time{} }, nil, []string{"note no_sweeper"}},
		"a loss":                          {func(d *doors) { d.Loss = &events.Loss{Cursor: 5, Oldest: 9, At: ago(time.Hour)} }, nil, []string{"warning events_lost"}},
		"a loss long ago":                 {func(d *doors) { d.Loss = &events.Loss{Cursor: 5, At: ago(9 * 24 * time.Hour)} }, nil, []string{"note events_lost"}},
		"another key":                     {func(d *doors) { d.CredentialChanged = ago(time.Hour) }, nil, []string{"note credential_changed"}},
		"another key long ago":            {func(d *doors) { d.CredentialChanged = ago(9 * 24 * time.Hour) }, nil, []string{}},
		"parked":                          {func(d *doors) { d.Parked = 1 }, nil, []string{"note events_parked"}},
		"failed":                          {func(d *doors) { d.Parked, d.Failed = 1, 1 }, nil, []string{"warning events_failed", "note events_parked"}},
		"unreadable":                      {func(d *doors) { d.Unreadable = 1 }, nil, []string{"note deliveries_unreadable"}},
		"pushed just now":                 {inboxes(doctor.InboxDoors{Inbox: "ibx_1", PushOnly: 9, Swept: true}), nil, []string{}},
		"passed by, but met since":        {inboxes(doctor.InboxDoors{Inbox: "ibx_1", Unmet: 1, Oldest: ago(3 * time.Hour), Swept: true, Met: ago(time.Hour)}), nil, []string{"warning cursor_suspect"}},
		"passed by, and nothing met":      {inboxes(doctor.InboxDoors{Inbox: "ibx_1", Unmet: 1, Oldest: ago(3 * time.Hour), Swept: true, Met: ago(5 * time.Hour)}), nil, []string{"warning cursor_suspect", "warning sweeps_empty"}},
		"passed by, and nothing ever met": {inboxes(doctor.InboxDoors{Inbox: "ibx_1", Unmet: 1, Oldest: ago(3 * time.Hour)}), nil, []string{"note sweeps_empty"}},
		"the same of our inbox":           {inboxes(doctor.InboxDoors{Inbox: "ibx_1", Unmet: 1, Oldest: ago(3 * time.Hour)}), []string{"ibx_1"}, []string{"warning sweeps_empty"}},
		"a foreign inbox beside ours": {inboxes(
			doctor.InboxDoors{Inbox: "ibx_1", Both: 3, Swept: true, Met: ago(time.Hour)},
			doctor.InboxDoors{Inbox: "ibx_2", Unmet: 7, Oldest: ago(3 * time.Hour)}), nil, []string{"note inbox_unswept"}},
		"the same, and ours are named": {inboxes(
			doctor.InboxDoors{Inbox: "ibx_1", Both: 3, Swept: true, Met: ago(time.Hour)},
			doctor.InboxDoors{Inbox: "ibx_2", Unmet: 7, Oldest: ago(3 * time.Hour)}), []string{"ibx_1"}, []string{}},
		"ours is the one": {inboxes(
			doctor.InboxDoors{Inbox: "ibx_1", Both: 3, Swept: true, Met: ago(time.Hour)},
			doctor.InboxDoors{Inbox: "ibx_2", Unmet: 7, Oldest: ago(3 * time.Hour)}), []string{"ibx_1", "ibx_2"}, []string{"warning inbox_unswept"}},
		"tests have no inbox":   {inboxes(doctor.InboxDoors{Unmet: 7, Oldest: ago(3 * time.Hour), Swept: true}), nil, []string{}},
		"events without number": {func(d *doors) { d.Cursor = 0; d.Inboxes[0].Unmet, d.Inboxes[0].Oldest = 3, ago(time.Hour) }, nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{doors: healthy()}
			c.change(&b.doors)
			require.Equal(t, c.want, found(report(t, doctor.Config{Inbox: b, Inboxes: c.inboxes})))
		})
	}
}

func TestCountsThatEndAtALimitSaySo(t *testing.T) {
	t.Parallel()
	b := &book{doors: healthy()}
	b.doors.Sample, b.doors.Failed, b.doors.Parked = 1000, 1000, 999
	r := report(t, doctor.Config{Inbox: b})
	require.Contains(t, text(t, r, doctor.EventsFailed), "failed on at least 1000 events")
	require.Contains(t, text(t, r, doctor.EventsParked), "fails on 999 events")
}

func TestAPushDoorThatNobodyKnocksAt(t *testing.T) {
	t.Parallel()
	b := &book{doors: healthy()}
	b.doors.Inboxes = []doctor.InboxDoors{{Inbox: "ibx_1", SweepOnly: 10, Swept: true}}
	h := newHandler(t, secretOf(1))
	require.Equal(t, []string{"note push_silent"}, found(report(t, doctor.Config{Inbox: b, Handler: h})))
	require.Empty(t, found(report(t, doctor.Config{Inbox: b})), "there is none")
	b.doors.Inboxes[0].SweepOnly = 9
	require.Empty(t, found(report(t, doctor.Config{Inbox: b, Handler: h})), "a sweep may be faster")
	b.doors.Inboxes[0] = doctor.InboxDoors{Inbox: "ibx_1", SweepOnly: 99, Both: 1, Swept: true}
	require.Empty(t, found(report(t, doctor.Config{Inbox: b, Handler: h})))
}

func TestAnEventsFateByDeliveryAndStore(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	now := time.Now()
	for name, c := range map[string]struct {
		age    time.Duration // of the delivery; 0 is not told
		known  map[string]bool
		change func(*doctor.Doors)
		want   doctor.Fate
	}{
		"the cursor brought it":      {hour, map[string]bool{"evt_1": true}, nil, doctor.BySweep},
		"long ago":                   {99 * 24 * hour, map[string]bool{"evt_1": true}, nil, doctor.BySweep},
		"a webhook brought it":       {hour, map[string]bool{"evt_1": false}, nil, doctor.ByPush},
		"passed by":                  {hour, nil, nil, doctor.Missing},
		"no sweep so far":            {2 * time.Minute, nil, nil, doctor.Waiting},
		"sweeps stand still":         {hour, nil, func(d *doctor.Doors) { d.Through = now.Add(-3 * hour) }, doctor.Waiting},
		"nothing sweeps":             {hour, nil, func(d *doctor.Doors) { d.Known, d.Through = false, time.Time{} }, doctor.Missing},
		"no time":                    {0, nil, nil, doctor.Untold},
		"history":                    {hour, nil, func(d *doctor.Doors) { d.Since = now.Add(-hour / 2) }, doctor.Untold},
		"its ID may be forgotten":    {6*24*hour + hour, nil, nil, doctor.Untold},
		"its ID cannot be forgotten": {5 * 24 * hour, nil, nil, doctor.Missing},
		"IDs are kept for ever":      {99 * 24 * hour, nil, func(d *doctor.Doors) { d.Remembers = 0 }, doctor.Missing},
		"IDs are kept for an hour":   {hour, nil, func(d *doctor.Doors) { d.Remembers = hour }, doctor.Untold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := doctor.Delivery{EventID: "evt_1", State: doctor.Canceled}
			if c.age > 0 {
				d.At = now.Add(-c.age)
			}
			b := &book{doors: healthy(), known: c.known}
			if c.change != nil {
				c.change(&b.doors)
			}
			given := []doctor.Endpoint{{ID: "whk_1", Deliveries: []doctor.Delivery{d}}}
			r := report(t, doctor.Config{Inbox: b, Provider: &lister{endpoints: given}})
			require.Equal(t, c.want, r.Endpoints[0].Deliveries[0].Event)
			require.Equal(t, 1, r.Endpoints[0].Canceled.Total)
			level := doctor.Note
			if c.want == doctor.Missing {
				level = doctor.Warning
			}
			require.Contains(t, found(r), string(level)+" deliveries_canceled")
			require.Empty(t, given[0].Deliveries[0].Event, "what the provider gave is not written to")
		})
	}
}

func TestFindingsOfDeliveries(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-time.Hour)
	givenUp := func(status int, final bool) doctor.Delivery {
		return doctor.Delivery{EventID: "evt_1", State: doctor.GivenUp, Status: status, Final: final, At: at}
	}
	endpoint := func(list ...doctor.Delivery) *lister {
		return &lister{endpoints: []doctor.Endpoint{{ID: "whk_1", Deliveries: list}}}
	}
	for name, c := range map[string]struct {
		provider doctor.Provider
		want     []string
		says     string // of the first
	}{
		"none given up": {endpoint(doctor.Delivery{State: doctor.Pending}, doctor.Delivery{State: doctor.Unknown}), []string{}, ""},
		"given up": {
			endpoint(givenUp(500, false), givenUp(0, false), givenUp(429, false), doctor.Delivery{State: doctor.Delivered}),
			[]string{"note deliveries_given_up"},
			"3 of the newest 4 deliveries to whk_1 (1 × 4xx, 1 × 5xx, 1 × no answer): the cursor recovered 3;",
		},
		"at a 4xx": {
			endpoint(givenUp(404, true), givenUp(404, true)),
			[]string{"warning deliveries_given_up"},
			"(2 × final 4xx)",
		},
		"disabled":    {&lister{endpoints: []doctor.Endpoint{{ID: "whk_1", Disabled: true}}}, []string{"warning endpoint_disabled"}, "whk_1"},
		"no endpoint": {&lister{}, []string{"warning no_endpoint"}, "register one"},
		"refused":     {&lister{err: &client.Error{Op: "list", Status: 403, Class: client.ClassCredential}}, []string{"note listing_refused"}, "webhooks:read"},
		"no key":      {&lister{err: &client.Error{Op: "list", Status: 401, Class: client.ClassCredential}}, []string{"note listing_refused"}, "check the key"},
		"away":        {&lister{err: &client.Error{Op: "list", Status: 502, Class: client.ClassService}}, []string{"note provider_unavailable"}, "(HTTP 502)"},
		"out of time": {&lister{err: context.DeadlineExceeded}, []string{"note provider_unavailable"}, "ask again later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := report(t, doctor.Config{
				Inbox: &book{doors: healthy(), known: map[string]bool{"evt_1": true}}, Handler: newHandler(t, secretOf(1)), Provider: c.provider,
			})
			require.Equal(t, c.want, found(r))
			require.Contains(t, r.Findings[0].Text, c.says)
		})
	}
}

func TestFindingsOfSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rotated := time.Now()
		h := newHandler(t, secretOf(2), secretOf(1).Until(rotated.Add(48*time.Hour)))
		d := newDoctor(t, doctor.Config{Handler: h})
		says := func() []string { return found(d.Report(t.Context())) }
		require.Empty(t, says())

		deliver(t, h, secretOf(9))
		require.Equal(t, []string{"note nothing_verified"}, says())
		deliver(t, h, secretOf(1))
		require.Empty(t, says(), "a rotation leaves some under way")
		time.Sleep(23 * time.Hour)
		deliver(t, h, secretOf(2))
		require.Empty(t, says())
		time.Sleep(time.Hour)
		deliver(t, h, secretOf(2))
		require.Equal(t, []string{"note secret_unused"}, says())
		require.Contains(t, text(t, d.Report(t.Context()), doctor.SecretUnused), "v1 has verified nothing for 24h")

		time.Sleep(18*time.Hour + time.Second) // ends in six hours
		deliver(t, h, secretOf(1))
		require.Equal(t, []string{"warning secret_still_used"}, says())
		time.Sleep(2 * time.Hour)
		require.Empty(t, says(), "not any more")
		time.Sleep(48 * time.Hour)
		deliver(t, h, secretOf(2))
		require.Empty(t, says(), "it has ended")
	})
}

// A rotation while serving makes the secret that signs the previous one. It
// must not be said to verify nothing, nor one that was only just brought.
func TestARotationWhileServing(t *testing.T) {
	t.Parallel()
	plain := func(n int) verify.Secret { return verify.RawSecret(fmt.Sprintf("%032d", n)) }
	for name, c := range map[string]struct{ before, after []verify.Secret }{
		"numbered":       {[]verify.Secret{plain(1)}, []verify.Secret{plain(2), plain(1)}},
		"named":          {[]verify.Secret{secretOf(1)}, []verify.Secret{secretOf(2), secretOf(1)}},
		"named by place": {[]verify.Secret{plain(1).Version("current"), plain(9).Version("previous")}, []verify.Secret{plain(2).Version("current"), plain(1).Version("previous")}},
		"prepared":       {[]verify.Secret{plain(1)}, []verify.Secret{plain(1), plain(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(t, c.before...)
				d := newDoctor(t, doctor.Config{Handler: h})
				time.Sleep(47 * time.Hour)
				deliver(t, h, plain(1))
				time.Sleep(time.Hour)
				require.NoError(t, h.Verifier().SetSecrets(c.after...))
				require.Empty(t, found(d.Report(t.Context())))
				deliver(t, h, plain(1))
				require.Empty(t, found(d.Report(t.Context())))

				time.Sleep(25 * time.Hour)
				deliver(t, h, c.after[0])
				require.Equal(t, []string{"note secret_unused"}, found(d.Report(t.Context())))
			})
		})
	}
}

// A process that has just begun cannot say that a secret is not used.
func TestASecretCanGoOnlyAfterADayOfThisProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, secretOf(2), secretOf(1))
		d := newDoctor(t, doctor.Config{Handler: h})
		deliver(t, h, secretOf(2))
		require.Empty(t, found(d.Report(t.Context())))
		time.Sleep(25 * time.Hour)
		require.Empty(t, found(d.Report(t.Context())), "no webhook came, of neither")
		deliver(t, h, secretOf(2))
		require.Equal(t, []string{"note secret_unused"}, found(d.Report(t.Context())))
	})
}

func TestFindingsOfTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		skew, within time.Duration
		want         []string
	}{
		{0, time.Second, []string{}},
		{29 * time.Second, time.Second, []string{}},
		{30 * time.Second, time.Second, []string{"note clock_skew"}},
		{-30 * time.Second, time.Second, []string{"note clock_skew"}},
		{75 * time.Second, time.Second, []string{"note clock_skew"}},
		{76 * time.Second, time.Second, []string{"warning clock_skew"}},
		{-2 * time.Hour, time.Second, []string{"warning clock_skew"}},
		{31 * time.Second, 4 * time.Second, []string{}}, // the answer took six
	} {
		t.Run(fmt.Sprint(c.skew, c.within), func(t *testing.T) {
			t.Parallel()
			p := &silent{client.Clock{Skew: c.skew, Within: c.within, At: time.Now()}}
			r := report(t, doctor.Config{Provider: p, Handler: newHandler(t, secretOf(1))})
			require.Equal(t, c.want, found(r))
			require.EqualValues(t, c.skew/time.Second, r.SkewSeconds)
			require.False(t, r.ClockRead.IsZero())
		})
	}
	r := report(t, doctor.Config{Provider: &silent{client.Clock{Skew: 2 * time.Minute, At: time.Now()}}})
	require.Contains(t, text(t, r, doctor.ClockSkew), "Our clock is 2m0s behind the provider's")
}

func TestAReportIsMadeWhateverDoesNotAnswer(t *testing.T) {
	t.Parallel()
	canceled := &lister{endpoints: []doctor.Endpoint{{ID: "whk_1", Deliveries: []doctor.Delivery{{EventID: "evt_1", State: doctor.Canceled, At: time.Now()}}}}}
	for name, c := range map[string]struct {
		book *book
		want []string
	}{
		"nothing":        {&book{err: errStore}, []string{"warning store_unavailable", "note deliveries_canceled"}},
		"not the events": {&book{doors: healthy(), errOfKnown: errStore}, []string{"warning store_unavailable", "note deliveries_canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := report(t, doctor.Config{Inbox: c.book, Provider: canceled, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.Equal(t, c.want, found(r))
			require.Equal(t, doctor.Untold, r.Endpoints[0].Deliveries[0].Event)
			require.NotContains(t, r.String(), "db.example", "a driver names host and user")
			require.Contains(t, log.String(), "db.example")
		})
	}
	foreign := report(t, doctor.Config{Inbox: &book{err: fmt.Errorf("x: %w", events.ErrForeignStream)}})
	require.Contains(t, text(t, foreign, doctor.StoreUnavailable), "another project")
}

func TestReportEncodes(t *testing.T) {
	t.Parallel()
	b := &book{doors: healthy()}
	b.doors.Cursor = 9_007_199_254_740_993 // more than a JavaScript number holds
	r := report(t, doctor.Config{
		Inbox: b, Handler: newHandler(t, secretOf(1)),
		Provider: &lister{endpoints: []doctor.Endpoint{{ID: "whk_1", Deliveries: []doctor.Delivery{{EventID: "evt_1", State: doctor.Canceled, At: time.Now()}}}}},
	})
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"cursor":"9007199254740993"`)
	var back doctor.Report
	require.NoError(t, json.Unmarshal(encoded, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(encoded), string(again))
}

func TestReportPrints(t *testing.T) {
	t.Parallel()
	h := newHandler(t, secretOf(1))
	deliver(t, h, secretOf(1))
	r := report(t, doctor.Config{
		Inbox: &book{doors: healthy()}, Handler: h,
		Provider: &lister{endpoints: []doctor.Endpoint{{ID: "whk_1"}}},
	})
	printed := r.String()
	for _, want := range []string{
		"mail, 20", "ok       sweep: Everything up to",
		"cursor  settled  attached  received through      parked  failed  unreadable\n900     890      0         20",
		"inbox  both doors  sweep only  push only  unmet  floor\nibx_1  5           0           0          0      0\n",
		"of this process  1      0          0       0           0           0\n",
		"v1      1         20",
		"endpoint  secret version  deliveries  given up  cancelled  recovered  missing\nwhk_1     -               0           0         0          0          0\n",
	} {
		require.Contains(t, printed, want)
	}
}

func TestReportPrintsNoControlCharacters(t *testing.T) {
	t.Parallel()
	b := &book{doors: healthy()}
	b.doors.Inboxes[0] = doctor.InboxDoors{Inbox: "ibx\x1b[2J", Unmet: 1, Oldest: time.Now(), Swept: true}
	r := report(t, doctor.Config{
		Inbox: b, Handler: newHandler(t, secretOf(1)),
		Provider: &lister{endpoints: []doctor.Endpoint{{ID: "whk\x07", SecretVersion: "2\x1b", Disabled: true}}},
	})
	printed := r.String()
	for _, c := range []string{"\x1b", "\x07"} {
		require.NotContains(t, printed, c)
	}
	require.Contains(t, printed, `"ibx\x1b[2J"`)
}

func TestSweepTrouble(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusUnauthorized:       "warning sweep_failing",
		http.StatusNotFound:           "warning sweep_failing",
		http.StatusTooManyRequests:    "warning sweep_failing",
		http.StatusServiceUnavailable: "note sweep_failing",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s, err := events.NewSweeper(refusing(status), attached{}, events.SweeperConfig{Start: events.FromNow})
			require.NoError(t, err)
			_, err = s.Sweep(t.Context())
			require.Error(t, err)
			require.Equal(t, []string{want}, found(report(t, doctor.Config{Inbox: &book{doors: healthy()}, Sweeper: s})))
			require.Contains(t, found(report(t, doctor.Config{Sweeper: s})), "warning sweep_behind")
		})
	}
}

// refusing is a source that answers a status.
type refusing int

func (refusing) Stream() events.Stream { return events.Stream{} }
func (refusing) Sequenced() bool       { return true }

func (r refusing) Head(context.Context) (events.Cursor, error) { return 0, r.err() }

func (r refusing) Page(context.Context, events.Cursor) (events.Page, error) {
	return events.Page{}, r.err()
}

func (r refusing) err() error {
	class := map[int]client.Class{401: client.ClassCredential, 404: client.ClassRequest, 429: client.ClassQuota, 503: client.ClassService}
	return &client.Error{Op: "list", Status: int(r), Class: class[int(r)]}
}

// attached is a store in which the stream has a position.
type attached struct{ events.Receiver }

func (attached) Stream() events.Stream { return events.Stream{} }

func (attached) Position(context.Context) (events.Position, error) {
	return events.Position{Known: true, Now: time.Now()}, nil
}
func (attached) Lease(context.Context, string, time.Duration) (bool, error) { return true, nil }
func (attached) Release(context.Context, string) error                      { return nil }
