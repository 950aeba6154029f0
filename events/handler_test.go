package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

var secret = verify.RawSecret("0123456789abcdef0123456789abcdef")

// jsonProfile reads {"id","type"} and wants the ID of the header.
func jsonProfile(d verify.Delivery, body []byte) (events.Event, error) {
	var in struct{ ID, Type string }
	if err := json.Unmarshal(body, &in); err != nil {
		return events.Event{}, fmt.Errorf("body %q: %w", body, err) // as careless as a user's may be
	}
	if in.ID != d.ID {
		return events.Event{}, fmt.Errorf("%w: header and body name different IDs", events.ErrNotEvent)
	}
	ev := events.Event{ID: in.ID, Type: in.Type}
	if in.Type == "message.received" {
		ev.Kind = events.KindReceived
	}
	return ev, nil
}

type door struct {
	*httptest.Server
	handler *events.Handler
	inbox   *memory
	log     *logBuffer
}

// openDoor serves a Handler over real HTTP.
func openDoor(t *testing.T, profile events.Profile) *door {
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}, MaxBody: 1 << 10, FailStatus: 401})
	require.NoError(t, err)
	d := &door{inbox: newMemory(), log: &logBuffer{}}
	d.handler, err = events.NewHandler(v, profile, d.inbox, events.HandlerConfig{
		Logger: slog.New(slog.NewJSONHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(t, err)
	d.Server = httptest.NewServer(d.handler)
	t.Cleanup(d.Close)
	return d
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// post sends a delivery signed at a time, and wants an answer that says nothing
// beyond its status.
func (d *door) post(t *testing.T, id, body string, at time.Time, change ...func(*http.Request)) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL, strings.NewReader(body))
	require.NoError(t, err)
	req.Header, err = verify.Sign(secret, id, at, []byte(body))
	require.NoError(t, err)
	for _, c := range change {
		c(req)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Empty(t, said)
	return res
}

const received = `{"id":"evt_1","type":"message.received"}`

func TestHandlerAnswers204AfterTheCommit(t *testing.T) {
	t.Parallel()
	d := openDoor(t, jsonProfile)
	for range 2 {
		require.Equal(t, 204, d.post(t, "evt_1", received, time.Now()).StatusCode)
	}
	require.Equal(t, map[string]int{"evt_1": 1}, d.inbox.handed)
	require.Equal(t, events.HandlerCounts{Fresh: 1, Duplicate: 1}, d.handler.Counts())
}

func TestHandlerLogsDeliveryAndSecretVersionAtDebug(t *testing.T) {
	t.Parallel()
	d := openDoor(t, jsonProfile)
	d.post(t, "evt_1", received, time.Now())
	require.Contains(t, d.log.String(), `"level":"DEBUG"`)
	require.Contains(t, d.log.String(), `"delivery":"evt_1"`)
	require.Contains(t, d.log.String(), `"secret_version"`)
	require.NotContains(t, d.log.String(), "message.received")
}

func TestHandlerTakesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	d := openDoor(t, func(del verify.Delivery, body []byte) (events.Event, error) {
		return events.Event{ID: del.ID}, nil
	})
	var got events.Event
	d.inbox.push = func(context.Context) error { return nil }
	keep := d.inbox
	wrapped := &spy{memory: keep, saw: &got}
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	require.NoError(t, err)
	h, err := events.NewHandler(v, func(del verify.Delivery, _ []byte) (events.Event, error) {
		return events.Event{ID: del.ID, Message: "a\x00b\xff", Thread: strings.Repeat("t", 1025), Inbox: strings.Repeat("i", 1024)}, nil
	}, wrapped, events.HandlerConfig{})
	require.NoError(t, err)
	body := `{"id":"evt_9","type":"x.y","api_version":"2099-01-01","new":[{}]}`
	header, err := verify.Sign(secret, "evt_9", time.Now(), []byte(body))
	require.NoError(t, err)
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	req.Header = header
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	require.Equal(t, 204, rec.Code)
	require.Equal(t, events.KindUnknown, got.Kind)
	require.Equal(t, body, string(got.Data.Bytes()), "kept raw")
	require.Equal(t, "a\uFFFDb\uFFFD", got.Message, "what no store keeps is replaced")
	require.Len(t, got.Thread, len("sha256:")+64, "and what no index takes")
	require.Len(t, got.Inbox, 1024)
}

type spy struct {
	*memory
	saw *events.Event
}

func (s *spy) Push(ctx context.Context, ev events.Event) (events.Result, error) {
	*s.saw = ev
	return s.memory.Push(ctx, ev)
}

func TestHandlerAtTheDoor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	set := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header[key] = []string{value} }
	}
	forged, err := verify.Sign(verify.RawSecret("ffffffffffffffffffffffffffffffff"), "evt_1", now, []byte(received))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		body   string
		at     time.Time
		change func(*http.Request)
		want   int
	}{
		"wrong secret":     {received, now, func(r *http.Request) { r.Header = forged }, 401},
		"no signature":     {received, now, func(r *http.Request) { r.Header = http.Header{} }, 401},
		"another body":     {received, now, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(received + " ")); r.ContentLength++ }, 401},
		"another ID":       {received, now, set("Webhook-Id", "evt_2"), 401},
		"stale":            {received, now.Add(-time.Hour), nil, 401},
		"future":           {received, now.Add(time.Hour), nil, 401},
		"over the cap":     {strings.Repeat(" ", 1<<10+1), now, nil, 413},
		"over, undeclared": {strings.Repeat(" ", 1<<10+1), now, func(r *http.Request) { r.ContentLength = -1 }, 413},
		"a GET":            {"", now, func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"a HEAD":           {"", now, func(r *http.Request) { r.Method = http.MethodHead }, 405},
		"a PUT":            {received, now, func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"not JSON":         {"mail from stranger@example.com", now, nil, 500},
		"empty":            {"", now, nil, 500},
		"IDs that differ":  {`{"id":"evt_other"}`, now, nil, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, jsonProfile)
			var change []func(*http.Request)
			if c.change != nil {
				change = append(change, c.change)
			}
			res := d.post(t, "evt_1", c.body, c.at, change...)
			require.Equal(t, c.want, res.StatusCode)
			require.Empty(t, d.inbox.claims, "claims no event ID")
			require.Empty(t, res.Header.Get("Location"))
			if c.want == 405 {
				require.Equal(t, "POST", res.Header.Get("Allow"))
			}
			require.Equal(t, c.want == 401, d.handler.Counts().Unverified == 1)
			require.Equal(t, c.want == 500, d.handler.Counts().Unreadable == 1)
			require.NotContains(t, d.log.String(), "stranger", "content is never logged")
		})
	}
}

func TestHandlerWhenTheStoreDoesNotTakeIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		want       int
		retryAfter string
	}{
		"store down":     {errStore, 503, "5"},
		"busy":           {fmt.Errorf("inbox: %w", events.ErrBusy), 503, "5"},
		"foreign stream": {events.ErrForeignStream, 503, "5"},
		"parked":         {fmt.Errorf("inbox: %w: boom", events.ErrParked), 500, ""},
		"provider error": {&client.Error{Op: "read", Status: 401, Class: client.ClassCredential}, 503, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, jsonProfile)
			d.inbox.push = func(context.Context) error { return c.err }
			res := d.post(t, "evt_1", received, time.Now())
			require.Equal(t, c.want, res.StatusCode)
			require.Equal(t, c.retryAfter, res.Header.Get("Retry-After"))
		})
	}
}

// A broken connection to the provider is a null status; an answer is better.
func TestHandlerGivesUpBeforeTheProviderDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
		require.NoError(t, err)
		inbox := newMemory()
		inbox.push = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		h, err := events.NewHandler(v, jsonProfile, inbox, events.HandlerConfig{})
		require.NoError(t, err)
		header, err := verify.Sign(secret, "evt_1", time.Now(), []byte(received))
		require.NoError(t, err)
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(received))
		req.Header = header
		rec := httptest.NewRecorder()
		began := time.Now()
		h.ServeHTTP(rec, req)
		require.Equal(t, 503, rec.Code)
		require.Equal(t, 9*time.Second, time.Since(began))
	})
}

// A body that trickles in does not keep the answer back either.
func TestHandlerGivesUpOnASlowBodyInTime(t *testing.T) {
	t.Parallel()
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	require.NoError(t, err)
	h, err := events.NewHandler(v, jsonProfile, newMemory(), events.HandlerConfig{Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	header, err := verify.Sign(secret, "evt_1", time.Now(), []byte(received))
	require.NoError(t, err)
	body, more := io.Pipe()
	defer more.Close()
	go func() { _, _ = more.Write([]byte(received[:5])) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	require.NoError(t, err)
	req.Header = header
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 500, res.StatusCode)
	require.Less(t, time.Since(began), 5*time.Second, "the verifier alone would wait for 10")
}

func TestHandlerAcknowledgesAnUnreadableDeliveryInTheEnd(t *testing.T) {
	t.Parallel()
	d := openDoor(t, jsonProfile)
	for range 10 {
		require.Equal(t, 500, d.post(t, "evt_1", "no", time.Now()).StatusCode)
	}
	require.Equal(t, 500, d.post(t, "evt_2", "no", time.Now()).StatusCode, "each header ID by itself")
	require.Equal(t, 204, d.post(t, "evt_1", "no", time.Now()).StatusCode)
	require.Empty(t, d.inbox.claims)
	require.Equal(t, map[string]int{"evt_1": 11, "evt_2": 1}, d.inbox.unreadable)
}

func TestHandlerUnreadableWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	d := openDoor(t, jsonProfile)
	d.inbox.before = func(string) error { return errStore }
	res := d.post(t, "evt_1", "no", time.Now())
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "5", res.Header.Get("Retry-After"))
}

func TestHandlerSurvivesAProfileThatPanics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile events.Profile
		says    string
	}{
		"with the body": {func(_ verify.Delivery, body []byte) (events.Event, error) { panic(string(body)) }, "panicked with string"},
		"out of range":  {func(_ verify.Delivery, body []byte) (events.Event, error) { _ = body[4711]; panic("") }, "index out of range"},
		"without an ID": {func(verify.Delivery, []byte) (events.Event, error) { return events.Event{}, nil }, "gave it no ID"},
		"careless":      {func(_ verify.Delivery, b []byte) (events.Event, error) { return events.Event{}, errors.New(string(b)) }, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, c.profile)
			require.Equal(t, 500, d.post(t, "evt_1", "stranger", time.Now()).StatusCode)
			require.Contains(t, d.log.String(), c.says)
			require.NotContains(t, d.log.String(), "stranger")
			require.Equal(t, map[string]int{"evt_1": 1}, d.inbox.unreadable)
		})
	}
}

func TestNewHandlerReportsEveryFault(t *testing.T) {
	t.Parallel()
	h, err := events.NewHandler(nil, nil, nil, events.HandlerConfig{Timeout: -1})
	require.Nil(t, h)
	require.ErrorIs(t, err, events.ErrConfig)
	for _, want := range []string{"Verifier", "Profile", "Receiver", "Timeout"} {
		require.ErrorContains(t, err, want)
	}
}

func TestHandlerTakesManyAtOnce(t *testing.T) {
	t.Parallel()
	d := openDoor(t, jsonProfile)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			id := fmt.Sprintf("evt_%d", i/2) // each twice
			d.post(t, id, fmt.Sprintf(`{"id":%q,"type":"t"}`, id), time.Now())
		})
	}
	wg.Wait()
	require.Len(t, d.inbox.handed, 20)
	require.Equal(t, events.HandlerCounts{Fresh: 20, Duplicate: 20}, d.handler.Counts())
}
