package verify_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// untouchable fails a test whose body is read although it must not be.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func post(h http.Header, body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hooks", body)
	r.Header = h
	return r
}

func chunked(h http.Header, body io.Reader) *http.Request {
	r := post(h, body)
	r.ContentLength = -1
	r.TransferEncoding = []string{"chunked"}
	return r
}

func TestReadReturnsTheBody(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	large := bytes.Repeat([]byte("x"), 100_000)
	for name, r := range map[string]*http.Request{
		"small":       post(signed(t, []byte(payload)), strings.NewReader(payload)),
		"large":       post(signed(t, large), bytes.NewReader(large)),
		"chunked":     chunked(signed(t, large), bytes.NewReader(large)),
		"byte a read": chunked(signed(t, []byte(payload)), iotest.OneByteReader(strings.NewReader(payload))),
		"end with the last bytes": chunked(signed(t, []byte(payload)),
			iotest.DataErrReader(strings.NewReader(payload))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, body, err := v.Read(httptest.NewRecorder(), r)
			require.NoError(t, err)
			assert.Equal(t, messageID, d.ID)
			_, err = v.Verify(r.Header, body)
			require.NoError(t, err)
		})
	}
}

func TestReadEmptyBody(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	r := post(signed(t, nil), http.NoBody)
	_, body, err := v.Read(httptest.NewRecorder(), r)
	require.NoError(t, err)
	assert.Empty(t, body)
	r.Body = nil // as in a request made by hand
	_, _, err = v.Read(httptest.NewRecorder(), r)
	require.NoError(t, err)
}

// Whatever is wrong with the headers, not one byte of the body is read.
func TestHeadersComeBeforeTheBody(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t, "testdata/cases.json") {
		if c.Outcome == "verified" || c.Outcome == "no_match" {
			continue
		}
		t.Run(c.Group+"/"+c.Name, func(t *testing.T) {
			t.Parallel()
			_, body, err := c.verifier(t).Read(httptest.NewRecorder(), chunked(c.header(), untouchable{t}))
			require.ErrorIs(t, err, outcomes[c.Outcome])
			assert.Nil(t, body)
		})
	}
}

func TestBodyFaults(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset by peer " + strings.Repeat("x", 1<<20))
	whole := func() io.Reader { return strings.NewReader(payload) }
	for name, c := range map[string]struct {
		body    io.Reader
		length  int64
		want    error
		status  int
		maxBody int64
	}{
		"at the cap":                     {whole(), 20, nil, 200, 20},
		"at the cap, chunked":            {whole(), -1, nil, 200, 20},
		"a byte over, declared":          {untouchable{t}, 21, verify.ErrBodyTooLarge, 413, 20},
		"10 GB, declared":                {untouchable{t}, 10 << 30, verify.ErrBodyTooLarge, 413, 0},
		"a byte over, chunked":           {whole(), -1, verify.ErrBodyTooLarge, 413, 19},
		"endless, chunked":               {endless{}, -1, verify.ErrBodyTooLarge, 413, 0},
		"over another cap":               {http.MaxBytesReader(nil, io.NopCloser(whole()), 5), 20, verify.ErrBodyTooLarge, 413, 0},
		"breaks off":                     {io.MultiReader(strings.NewReader(payload[:5]), iotest.ErrReader(io.ErrUnexpectedEOF)), 20, verify.ErrBodyIncomplete, 500, 0},
		"breaks after the last byte":     {io.MultiReader(whole(), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, verify.ErrBodyIncomplete, 500, 0},
		"breaks with a long story":       {iotest.ErrReader(broken), -1, verify.ErrBodyIncomplete, 500, 0},
		"times out":                      {iotest.TimeoutReader(iotest.OneByteReader(whole())), -1, verify.ErrBodyIncomplete, 500, 0},
		"consumed":                       {strings.NewReader(""), 20, verify.ErrBodyConsumed, 500, 0},
		"none at all":                    {nil, 20, verify.ErrBodyConsumed, 500, 0},
		"consumed in part":               {strings.NewReader(payload[5:]), 20, verify.ErrBodyConsumed, 500, 0},
		"closed":                         {iotest.ErrReader(http.ErrBodyReadAfterClose), 20, verify.ErrBodyConsumed, 500, 0},
		"consumed, chunked":              {strings.NewReader(""), -1, verify.ErrBodyConsumed, 500, 0},
		"inflated by another middleware": {strings.NewReader(payload), 5, nil, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := config()
			conf.MaxBody = c.maxBody
			v := newVerifier(t, conf)
			r := post(signed(t, []byte(payload)), c.body)
			r.ContentLength = c.length
			d, body, err := v.Read(httptest.NewRecorder(), r)
			assert.Equal(t, c.status, v.Status(err))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			assert.Equal(t, c.status == 400, errors.Is(err, verify.ErrUnverified))
			assert.Less(t, len(err.Error()), 200)
			assert.Zero(t, d)
			assert.Nil(t, body)
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestIncompleteBodyKeepsItsCause(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	_, _, err := v.Read(httptest.NewRecorder(), chunked(signed(t, nil), iotest.ErrReader(context.Canceled)))
	require.ErrorIs(t, err, verify.ErrBodyIncomplete)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	c := config()
	c.FailStatus = http.StatusServiceUnavailable
	v := newVerifier(t, c)
	assert.Equal(t, 200, v.Status(nil))
	assert.Equal(t, 503, v.Status(verify.ErrUnverified))
	assert.Equal(t, 503, v.Status(&verify.TimestampError{}))
	assert.Equal(t, 413, v.Status(verify.ErrBodyTooLarge))
	assert.Equal(t, 500, v.Status(verify.ErrBodyIncomplete))
	assert.Equal(t, 500, v.Status(verify.ErrBodyConsumed))
	assert.Equal(t, 500, v.Status(errors.New("another")))
}
