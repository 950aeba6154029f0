package verify_test

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// echo answers with the body it reads, after checking what the middleware left.
func echo(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := verify.FromContext(r.Context())
		assert.True(t, ok)
		assert.Equal(t, messageID, d.ID)
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.EqualValues(t, len(body), r.ContentLength)
		assert.Empty(t, r.TransferEncoding)
		assert.NoError(t, r.Body.Close())
		_, _ = w.Write(body)
	})
}

func unreachable(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was reached") })
}

func TestMiddlewarePassesTheSameBytes(t *testing.T) {
	t.Parallel()
	h := newVerifier(t, config()).Middleware(echo(t))
	for name, body := range map[string]string{
		"json": payload, "empty": "", "binary": "\xff\xfe\x00", "large": strings.Repeat("x", 300_000),
	} {
		for _, request := range []func(http.Header, io.Reader) *http.Request{post, chunked} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(signed(t, []byte(body)), strings.NewReader(body)))
			assert.Equal(t, 200, w.Code, name)
			assert.Equal(t, body, w.Body.String(), name)
		}
	}
}

func TestMiddlewareLeavesTheOuterRequestAlone(t *testing.T) {
	t.Parallel()
	r := post(signed(t, []byte(payload)), strings.NewReader(payload))
	newVerifier(t, config()).Middleware(echo(t)).ServeHTTP(httptest.NewRecorder(), r)
	_, ok := verify.FromContext(r.Context())
	assert.False(t, ok)
}

// Every way not to be genuine looks the same from outside.
func TestMiddlewareRefusesAlike(t *testing.T) {
	t.Parallel()
	var answers []string
	for _, v := range readVectors(t, "testdata/cases.json") {
		if v.Outcome == "verified" {
			continue
		}
		w := httptest.NewRecorder()
		r := post(v.header(), bytes.NewReader(v.Body.bytes(t)))
		v.verifier(t).Middleware(unreachable(t)).ServeHTTP(w, r)
		var answer strings.Builder
		require.NoError(t, w.Result().Write(&answer))
		answers = append(answers, answer.String())
	}
	require.NotEmpty(t, answers)
	for _, answer := range answers {
		assert.Equal(t, answers[0], answer)
	}
	assert.True(t, strings.HasPrefix(answers[0], "HTTP/1.1 400 Bad Request\r\n"))
}

func TestMiddlewareAnswersBodyFaultsWithoutABody(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	for status, r := range map[int]*http.Request{
		http.StatusRequestEntityTooLarge: chunked(signed(t, nil), endless{}),
		http.StatusInternalServerError:   post(signed(t, nil), nil),
	} {
		if status == http.StatusInternalServerError {
			r.ContentLength = 20
		}
		w := httptest.NewRecorder()
		v.Middleware(unreachable(t)).ServeHTTP(w, r)
		assert.Equal(t, status, w.Code)
		assert.Empty(t, w.Body.String())
	}
}

func TestMiddlewareLogsTheReason(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := config()
	c.Logger = slog.New(slog.NewTextHandler(&out, nil))
	h := newVerifier(t, c).Middleware(unreachable(t))
	headers := signed(t, []byte(payload))
	h.ServeHTTP(httptest.NewRecorder(), post(headers, strings.NewReader("another body")))
	assert.Contains(t, out.String(), "level=WARN")
	assert.Contains(t, out.String(), "status=400")
	assert.Contains(t, out.String(), verify.ErrNoMatch.Error())
	for values := range maps.Values(headers) {
		assert.NotContains(t, out.String(), values[0])
	}
	assert.NotContains(t, out.String(), "another body")
	r := post(headers, strings.NewReader(""))
	r.ContentLength = 20
	h.ServeHTTP(httptest.NewRecorder(), r)
	assert.Contains(t, out.String(), "level=ERROR")
}

func TestMiddlewareOfAZeroVerifier(t *testing.T) {
	t.Parallel()
	for _, v := range []*verify.Verifier{nil, {}} {
		w := httptest.NewRecorder()
		v.Middleware(unreachable(t)).ServeHTTP(w, post(signed(t, nil), http.NoBody))
		assert.Equal(t, 500, w.Code)
	}
}
