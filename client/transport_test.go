package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
)

const (
	testKey = "efa_test_thekeythatmustnotshow"
	person  = "ann@secret.example"
)

type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) response() (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.header == nil {
		r.header = http.Header{}
	}
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(strings.NewReader(r.body))}, nil
}

// script answers one request after another, the last reply for ever. It is a
// RoundTripper: no network, so it runs within synctest.
type script struct {
	replies []reply
	asked   []time.Time
	last    *http.Request
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	next := s.replies[min(len(s.asked), len(s.replies)-1)]
	s.asked, s.last = append(s.asked, time.Now()), r
	return next.response()
}

func scripted(t *testing.T, replies ...reply) (*client.Transport, *script) {
	t.Helper()
	s := &script{replies: replies}
	return newTransport(t, client.TransportConfig{BaseURL: "https://api.example/v1", HTTPClient: &http.Client{Transport: s}}), s
}

func newTransport(t *testing.T, c client.TransportConfig) *client.Transport {
	t.Helper()
	c.Key = testKey
	transport, err := client.NewTransport(c)
	require.NoError(t, err)
	return transport
}

func served(t *testing.T, handler http.HandlerFunc) (*client.Transport, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newTransport(t, client.TransportConfig{BaseURL: server.URL, MaxWait: time.Millisecond}), server
}

func get() client.Request {
	return client.Request{Op: "list things", Method: http.MethodGet, Path: []string{"inboxes", person, "x"}}
}

func post() client.Request {
	r := get()
	r.Op, r.Method, r.Body, r.IdempotencyKey = "send", http.MethodPost, []byte(`{"to":"`+person+`"}`), "key-1"
	return r
}

// problem asserts an Error that prints nothing of the request or the answer.
func problem(t *testing.T, err error) *client.Error {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok, "%v", err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		printed := fmt.Sprintf(verb, err)
		for _, secret := range []string{testKey, "secret.example", "secret%2Eexample", "http://", "https://", "127.0.0.1", "xyzzy"} {
			assert.NotContains(t, printed, secret, verb)
		}
	}
	return e
}

func TestTransportSendsTheRequest(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, reply{status: 202, body: `{}`})
	r := post()
	r.Path = []string{"inboxes", "a/b?c#d %é@:+"}
	r.Query = url.Values{"limit": {"1"}}
	_, err := transport.Do(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, "https://api.example/v1/inboxes/a%2Fb%3Fc%23d%20%25%C3%A9%40%3A%2B?limit=1", s.last.URL.String())
	assert.Equal(t, "/v1/inboxes/a/b?c#d %é@:+", s.last.URL.Path)
	assert.Equal(t, "Bearer "+testKey, s.last.Header.Get("Authorization"))
	assert.Equal(t, "key-1", s.last.Header.Get("Idempotency-Key"))
	assert.Equal(t, "application/json", s.last.Header.Get("Content-Type"))
	assert.Equal(t, int64(len(r.Body)), s.last.ContentLength)
}

func TestTransportRefusesWithoutAsking(t *testing.T) {
	t.Parallel()
	transport, s := scripted(t, reply{status: 200, body: `{}`})
	for name, r := range map[string]client.Request{
		"empty ID":         {Op: "x", Method: "GET", Path: []string{"inboxes", ""}},
		"dots":             {Op: "x", Method: "GET", Path: []string{"inboxes", ".."}},
		"dot":              {Op: "x", Method: "GET", Path: []string{"."}},
		"key with a break": {Op: "x", Method: "POST", IdempotencyKey: "a\nb"},
		"key with a space": {Op: "x", Method: "POST", IdempotencyKey: "a b"},
		"long key":         {Op: "x", Method: "POST", IdempotencyKey: strings.Repeat("k", 256)},
		"method":           {Op: "x", Method: "NO METHOD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transport.Do(t.Context(), r)
			assert.Equal(t, client.ClassRequest, problem(t, err).Class)
			assert.Empty(t, s.asked)
		})
	}
}

func TestTransportReportsEveryFaultOfItsConfig(t *testing.T) {
	t.Parallel()
	_, err := client.NewTransport(client.TransportConfig{BaseURL: "api.example", Tries: -1})
	require.Error(t, err)
	for _, word := range []string{"base URL", "key", "tries"} {
		assert.Contains(t, err.Error(), word)
	}
	for _, base := range []string{
		"", "api.example", "/v1", "ftp://api.example", "https://", "https://:443", "https://u:xyzzy@api.example",
		"https://api.example?xyzzy=1", "https://api.example?", "https://api.example#xyzzy", "https://api.example#", "https://xyzzy\x7f",
	} {
		_, err := client.NewTransport(client.TransportConfig{BaseURL: base, Key: "k"})
		require.Error(t, err, base)
		assert.NotContains(t, err.Error(), "xyzzy")
	}
	for _, key := range []string{"a b", "xyzzy\n", "\tk", "ké", strings.Repeat("k", 4097)} {
		_, err := client.NewTransport(client.TransportConfig{BaseURL: "https://api.example", Key: key})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "xyzzy")
	}
}

func TestTransportBase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"HTTPS://API.Example/v1/":   "https://api.example/v1",
		"http://localhost:8080":     "http://localhost:8080",
		"https://[::1]:1/":          "https://[::1]:1",
		"https://api.example/a%2Fb": "https://api.example/a%2Fb",
	} {
		assert.Equal(t, want, newTransport(t, client.TransportConfig{BaseURL: in}).Base())
	}
}

func TestTransportPrintsNoKey(t *testing.T) {
	t.Parallel()
	transport, _ := scripted(t, reply{})
	holder := struct {
		A any
		b *client.Transport
	}{transport, transport}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{transport, *transport, holder, &holder} {
			assert.NotContains(t, fmt.Sprintf(verb, value), "mustnotshow")
			assert.NotContains(t, fmt.Sprintf(verb, value), fmt.Sprintf("%x", "mustnotshow"))
		}
	}
	encoded, err := json.Marshal(transport) //nolint:staticcheck // that nothing comes out is the test
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "mustnotshow")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "t", transport, "h", holder)
	assert.NotContains(t, log.String(), "mustnotshow")
}

func TestTransportReadsTheAnswer(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 9, 26, 12, 0, 0, 0, time.UTC)
	transport, _ := scripted(t, reply{status: 200, body: `{"a":1}`, header: http.Header{
		"Date": {date.Format(http.TimeFormat)}, "X-Request-Id": {"req_1"},
	}})
	answer, err := transport.Do(t.Context(), get())
	require.NoError(t, err)
	assert.Equal(t, client.Answer{
		Op: "list things", Status: 200, Body: []byte(`{"a":1}`), Date: date, RequestID: "req_1",
	}, answer)

	var into struct{ A string }
	e := problem(t, answer.Decode(&into))
	assert.ErrorIs(t, e, client.ErrBadAnswer)
	assert.Equal(t, client.ClassService, e.Class)
	assert.Equal(t, "list things: 200 not an answer: not the JSON it should be", e.Error())
}

func TestTransportClassesOfStatus(t *testing.T) {
	t.Parallel()
	for class, statuses := range map[client.Class][]int{
		client.ClassRequest:    {400, 404, 405, 409, 410, 413, 415, 422},
		client.ClassCredential: {401, 403},
		client.ClassQuota:      {402, 429},
		client.ClassService:    {301, 302, 304, 307, 308, 408, 425, 500, 501, 502, 503, 504, 599},
	} {
		for _, status := range statuses {
			transport, _ := scripted(t, reply{status: status, body: `{"error":{"code":"some_code","message":"xyzzy"}}`})
			_, err := transport.Do(t.Context(), post())
			e := problem(t, err)
			assert.Equal(t, class, e.Class, status)
			assert.Equal(t, status, e.Status)
			assert.Equal(t, "some_code", e.Code)
			assert.Equal(t, fmt.Sprintf("send: %d some_code", status), e.Error())
		}
	}
}

func TestTransportTakesNoStrangersWordsForACode(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"error":{"code":"xyzzy ann@secret.example"}}`, `{"error":{"code":"` + strings.Repeat("x", 65) + `"}}`,
		`{"error":{"code":7}}`, `{"error":"xyzzy"}`, `<html>xyzzy`, ``, `null`, `[]`, `{"error":null}`, `{"error":{"code":"a\nb"}}`,
	} {
		transport, _ := scripted(t, reply{status: 400, body: body, header: http.Header{"X-Request-Id": {"xyzzy ann"}}})
		_, err := transport.Do(t.Context(), post())
		e := problem(t, err)
		assert.Empty(t, e.Code)
		assert.Empty(t, e.RequestID)
		assert.Equal(t, "send: 400", e.Error())
	}
}

func TestTransportRetriesOnlyReads(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for name, tc := range map[string]struct {
		request client.Request
		first   reply
		asked   int
	}{
		"GET, 503":          {get(), reply{status: 503}, 2},
		"GET, 500":          {get(), reply{status: 500, body: "<html>"}, 2},
		"GET, network":      {get(), reply{err: reset}, 2},
		"GET, 400":          {get(), reply{status: 400}, 1},
		"GET, 401":          {get(), reply{status: 401}, 1},
		"GET, 429":          {get(), reply{status: 429}, 1},
		"GET, redirect":     {get(), reply{status: 302}, 1},
		"GET, short wait":   {get(), reply{status: 503, header: http.Header{"Retry-After": {"2"}}}, 2},
		"GET, long wait":    {get(), reply{status: 503, header: http.Header{"Retry-After": {"3"}}}, 1},
		"POST, 503":         {post(), reply{status: 503}, 1},
		"POST, network":     {post(), reply{err: reset}, 1},
		"POST, 503 at once": {post(), reply{status: 503, header: http.Header{"Retry-After": {"0"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				transport, s := scripted(t, tc.first, reply{status: 200, body: `{}`})
				_, err := transport.Do(t.Context(), tc.request)
				assert.Len(t, s.asked, tc.asked)
				assert.Equal(t, tc.asked == 2, err == nil, "%v", err)
			})
		})
	}
}

func TestTransportGivesUpSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, s := scripted(t, reply{status: 503, body: `{"error":{"code":"down"}}`})
		began := time.Now()
		_, err := transport.Do(t.Context(), get())
		assert.Equal(t, 503, problem(t, err).Status)
		assert.Len(t, s.asked, 3)
		assert.LessOrEqual(t, time.Since(began), 2*client.DefaultMaxWait)
	})
}

func TestTransportHonoursAShortRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport, s := scripted(t, reply{status: 503, header: http.Header{"Retry-After": {"1"}}})
		_, err := transport.Do(t.Context(), get())
		require.Error(t, err)
		require.Len(t, s.asked, 3)
		assert.GreaterOrEqual(t, s.asked[1].Sub(s.asked[0]), time.Second)
		assert.GreaterOrEqual(t, s.asked[2].Sub(s.asked[1]), time.Second)
	})
}

func TestTransportReadsRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 26, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "300": 5 * time.Minute, "301": 5 * time.Minute,
		"99999999999999999999": 5 * time.Minute, "-5": 0, "soon": 0, "1.5": 0, " 7": 0,
		now.Add(time.Minute).Format(http.TimeFormat):    time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat):   0,
		now.Add(24 * time.Hour).Format(http.TimeFormat): 5 * time.Minute,
	} {
		transport, _ := scripted(t, reply{status: 429, header: http.Header{
			"Retry-After": {value}, "Date": {now.Format(http.TimeFormat)},
		}})
		_, err := transport.Do(t.Context(), get())
		assert.Equal(t, want, client.RetryAfter(err), value)
	}
}

func TestTransportFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(other.Close)
	given := &http.Client{}
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/"+person, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	transport := newTransport(t, client.TransportConfig{BaseURL: server.URL, HTTPClient: given})

	for _, r := range []client.Request{get(), post()} {
		_, err := transport.Do(t.Context(), r)
		e := problem(t, err)
		require.ErrorIs(t, e, client.ErrBadAnswer)
		assert.Equal(t, 307, e.Status)
	}
	assert.False(t, followed.Load())
	assert.Nil(t, given.CheckRedirect, "the caller's client was changed")
}

func TestTransportCapsTheAnswer(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{200: client.ErrBadAnswer, 500: nil} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1001))
		}))
		t.Cleanup(server.Close)
		transport := newTransport(t, client.TransportConfig{BaseURL: server.URL, MaxBody: 1000, Tries: 1})
		_, err := transport.Do(t.Context(), get())
		e := problem(t, err)
		assert.Equal(t, status, e.Status)
		if want != nil {
			assert.ErrorIs(t, err, want)
		}
	}
}

// What strangers wrote may make a page too long, never a list unreadable.
func TestTransportAsksForLessOfAListThatIsTooLong(t *testing.T) {
	t.Parallel()
	var limits []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := r.URL.Query().Get("limit")
		limits = append(limits, limit)
		n, _ := strconv.Atoi(limit)
		_, _ = w.Write(bytes.Repeat([]byte(" "), 500*n))
	}))
	t.Cleanup(server.Close)
	r := get()
	r.Query = url.Values{"limit": {"100"}, "cursor": {"7"}}
	for most, want := range map[int64][]string{1000: {"100", "10", "1"}, 100: {"100", "10", "1"}, 5000: {"100", "10"}} {
		limits = nil
		transport := newTransport(t, client.TransportConfig{BaseURL: server.URL, MaxBody: most, Tries: 1})
		_, err := transport.Do(t.Context(), r)
		require.Equal(t, most < 500, errors.Is(err, client.ErrBadAnswer))
		require.Equal(t, want, limits)
	}
	require.Equal(t, "100", r.Query.Get("limit"), "the caller's request is as it was")
}

func TestTransportTellsACutAnswerFromARefusal(t *testing.T) {
	t.Parallel()
	for _, status := range []int{202, 400, 409} {
		transport, _ := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"code":"idempotency_conflict","message":"xyz`))
		})
		_, err := transport.Do(t.Context(), post())
		e := problem(t, err)
		require.ErrorIs(t, err, client.ErrUnavailable)
		assert.Equal(t, client.ClassService, e.Class)
		assert.Equal(t, status, e.Status)
		assert.True(t, client.IsRetryable(err))
	}
}

func TestTransportReducesNetworkErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		text string
	}{
		"refused":     {&net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, Err: syscall.ECONNREFUSED}, "no answer: connection refused"},
		"name":        {&net.DNSError{Err: "no such host", Name: "secret.example"}, "no answer: the host's name could not be resolved"},
		"odd":         {errors.New("xyzzy " + person), "no answer: the connection failed"},
		"cut":         {io.ErrUnexpectedEOF, "no answer: the connection failed"},
		"DNS timeout": {&net.DNSError{Err: "xyzzy", IsTimeout: true}, "no answer: timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport, _ := scripted(t, reply{err: tc.err})
			_, err := transport.Do(t.Context(), post())
			e := problem(t, err)
			require.ErrorIs(t, err, client.ErrUnavailable)
			assert.Equal(t, "send: "+tc.text, e.Error())
			network, ok := errors.AsType[net.Error](err)
			require.True(t, ok)
			assert.Equal(t, strings.Contains(tc.text, "timed out"), network.Timeout())
			_, leaks := errors.AsType[*url.Error](err)
			assert.False(t, leaks)
		})
	}
	transport, _ := scripted(t, reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}})
	_, err := transport.Do(t.Context(), post())
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// silent never answers.
type silent struct{ asked int }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestTransportEndsATryInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silent{}
		transport := newTransport(t, client.TransportConfig{BaseURL: "https://api.example", HTTPClient: &http.Client{Transport: s}})
		began := time.Now()
		_, err := transport.Do(t.Context(), post())
		problem(t, err)
		assert.Equal(t, client.DefaultTimeout, time.Since(began))
		require.ErrorIs(t, err, client.ErrUnavailable)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's deadline has not passed")
		network, ok := errors.AsType[net.Error](err)
		require.True(t, ok)
		assert.True(t, network.Timeout())
		assert.Equal(t, 1, s.asked)
	})
}

func TestTransportEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	errStop := errors.New("xyzzy: shutting down")
	for name, tc := range map[string]struct {
		end       func(context.Context) (context.Context, context.CancelFunc)
		is        []error
		retryable bool
	}{
		"cancel": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			stop := time.AfterFunc(time.Second, func() { cancel(errStop) })
			return ctx, func() { stop.Stop() }
		}, []error{context.Canceled, errStop}, false},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, []error{context.DeadlineExceeded}, true},
	} {
		for reason, via := range map[string]http.RoundTripper{
			"silence": &silent{},
			"pause":   &script{replies: []reply{{status: 503, header: http.Header{"Retry-After": {"2"}}}}},
		} {
			t.Run(name+" in "+reason, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := tc.end(t.Context())
					defer cancel()
					transport := newTransport(t, client.TransportConfig{BaseURL: "https://api.example", HTTPClient: &http.Client{Transport: via}})
					began := time.Now()
					_, err := transport.Do(ctx, get())
					problem(t, err)
					assert.Equal(t, time.Second, time.Since(began))
					for _, target := range append(tc.is, client.ErrUnavailable) {
						require.ErrorIs(t, err, target)
					}
					assert.Equal(t, tc.retryable, client.IsRetryable(err))
				})
			})
		}
	}
}

func TestTransportEndsASlowBody(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	transport := newTransport(t, client.TransportConfig{BaseURL: server.URL, Timeout: 50 * time.Millisecond})
	_, err := transport.Do(t.Context(), post())
	problem(t, err)
	require.ErrorIs(t, err, client.ErrUnavailable)
}

func TestTransportLetsAProviderClassify(t *testing.T) {
	t.Parallel()
	s := &script{replies: []reply{{status: 409, body: `{"error":{"code":"send_pending","transient":true}}`}}}
	transport := newTransport(t, client.TransportConfig{
		BaseURL: "https://api.example", HTTPClient: &http.Client{Transport: s},
		Classify: func(e *client.Error, body []byte) {
			if e.Code == "send_pending" && bytes.Contains(body, []byte(`"transient":true`)) {
				e.Class, e.Cause = client.ClassService, client.ErrInProgress
			}
		},
	})
	_, err := transport.Do(t.Context(), post())
	require.ErrorIs(t, err, client.ErrInProgress)
	assert.True(t, client.IsRetryable(err))
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	assert.Equal(t, client.Fingerprint("a"), client.Fingerprint("a"))
	assert.NotEqual(t, client.Fingerprint("a"), client.Fingerprint("b"))
	assert.Regexp(t, "^[0-9a-f]{12}$", client.Fingerprint(testKey))
}
