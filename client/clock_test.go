package client_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
)

// dated answers after a while, with a Date that is off.
type dated struct {
	off, takes time.Duration // the Date is made when half of it has passed
	status     int
	silent     bool
}

func (d *dated) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(d.takes / 2)
	h := http.Header{}
	if !d.silent {
		h.Set("Date", time.Now().Add(d.off).UTC().Format(http.TimeFormat))
	}
	time.Sleep(d.takes - d.takes/2)
	return reply{status: d.status, header: h, body: `{}`}.response()
}

func TestClockIsTheProvidersMinusOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off, takes time.Duration
		status     int
	}{
		"equal":                  {0, 0, 200},
		"ahead":                  {2 * time.Minute, 0, 200},
		"behind":                 {-2 * time.Minute, 0, 200},
		"slow answer":            {2 * time.Minute, 8 * time.Second, 200},
		"of a refusal, too":      {2 * time.Minute, 0, 401},
		"at the end of a second": {119_390 * time.Millisecond, 1200 * time.Millisecond, 200}, // the Date is made at 119.99
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport := newTransport(t, client.TransportConfig{
					BaseURL: "https://api.example/v1", Tries: 1,
					HTTPClient: &http.Client{Transport: &dated{off: c.off, takes: c.takes, status: c.status}},
				})
				_, _ = transport.Do(t.Context(), get())
				got := transport.Clock()
				assert.InDelta(t, c.off.Seconds(), got.Skew.Seconds(), 1)
				assert.Zero(t, got.Skew%time.Second)
				assert.Equal(t, time.Second+c.takes/2, got.Within)
				assert.True(t, got.At.Equal(time.Now()))
			})
		})
	}
}

func TestClockKeepsTheNewestReading(t *testing.T) {
	t.Parallel()
	d := &dated{status: 200, silent: true}
	transport := newTransport(t, client.TransportConfig{BaseURL: "https://api.example/v1", HTTPClient: &http.Client{Transport: d}})
	ask := func() client.Clock {
		_, err := transport.Do(t.Context(), get())
		require.NoError(t, err)
		return transport.Clock()
	}
	assert.Zero(t, ask(), "an answer without a Date tells nothing")
	d.silent, d.off = false, time.Hour
	assert.InDelta(t, time.Hour.Seconds(), ask().Skew.Seconds(), 1)
	d.off = 0
	assert.InDelta(t, 0, ask().Skew.Seconds(), 1)
	d.silent = true
	assert.NotZero(t, ask().At, "and does not undo what is known")
}
