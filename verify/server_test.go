package verify_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// These tests speak over real connections: what a recorder cannot show.

type server struct {
	*httptest.Server
	errors chan error // what Read said, one for each request
}

// newServer answers as Middleware does and passes on what Read said.
func newServer(t *testing.T, c verify.Config, change func(*http.Server)) *server {
	v := newVerifier(t, c)
	s := &server{errors: make(chan error, 16)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, body, err := v.Read(w, r)
		s.errors <- err
		w.WriteHeader(v.Status(err))
		_, _ = w.Write(body)
	}))
	if change != nil {
		change(s.Config)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// dial opens a connection on which a test writes by hand.
func (s *server) dial(t *testing.T) net.Conn {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func head(h http.Header, length int, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST /hooks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s", length, more)
	_ = h.Write(&b)
	b.WriteString("\r\n")
	return b.String()
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func readStatus(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

func TestSlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	for name, timeouts := range map[string][2]time.Duration{
		"by the verifier":          {50 * time.Millisecond, 0},
		"by the server, if sooner": {time.Hour, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config()
			c.ReadTimeout = timeouts[0]
			s := newServer(t, c, func(s *http.Server) { s.ReadTimeout = timeouts[1] })
			conn := s.dial(t)
			write(t, conn, head(signed(t, []byte(payload)), len(payload), "")+payload[:5])
			err := <-s.errors
			require.ErrorIs(t, err, verify.ErrBodyIncomplete)
			require.ErrorContains(t, err, "deadline")
			assert.Equal(t, 500, readStatus(t, bufio.NewReader(conn)))
		})
	}
}

// A forger who sends a head and then nothing is answered, not waited for.
func TestRefusedHeadIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	c := config()
	c.ReadTimeout = 50 * time.Millisecond
	s := newServer(t, c, nil)
	conn := s.dial(t)
	write(t, conn, head(http.Header{}, 1000, ""))
	require.ErrorIs(t, <-s.errors, verify.ErrMissingHeader)
	assert.Equal(t, 400, readStatus(t, bufio.NewReader(conn)))
}

// Who asks before sending the body is refused without having sent it.
func TestRefusedHeadGetsNoContinue(t *testing.T) {
	t.Parallel()
	s := newServer(t, config(), nil)
	for length, want := range map[int]int{20: 400, 2 << 20: 413} {
		h := signed(t, nil)
		if want == 400 {
			h.Del("Webhook-Id")
		}
		conn := s.dial(t)
		write(t, conn, head(h, length, "Expect: 100-continue\r\n"))
		require.Error(t, <-s.errors)
		assert.Equal(t, want, readStatus(t, bufio.NewReader(conn)))
	}
}

func TestConnectionThatEndsEarly(t *testing.T) {
	t.Parallel()
	s := newServer(t, config(), nil)
	conn := s.dial(t)
	write(t, conn, head(signed(t, []byte(payload)), len(payload), "")+payload[:5])
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	err := <-s.errors
	require.ErrorIs(t, err, verify.ErrBodyIncomplete)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, 500, readStatus(t, bufio.NewReader(conn)))
}

func TestBrokenChunks(t *testing.T) {
	t.Parallel()
	s := newServer(t, config(), nil)
	conn := s.dial(t)
	h := strings.Replace(head(signed(t, []byte(payload)), 0, ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
	write(t, conn, h+"5\r\n"+payload[:5]+"\r\nnot a length\r\n")
	require.ErrorIs(t, <-s.errors, verify.ErrBodyIncomplete)
	assert.Equal(t, 500, readStatus(t, bufio.NewReader(conn)))
}

// deadlines records what a connection would be told.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

func TestDeadlineIsTakenAwayFromAWholeBody(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	start := time.Now()
	_, _, err := newVerifier(t, config()).Read(w, post(signed(t, []byte(payload)), strings.NewReader(payload)))
	require.NoError(t, err)
	require.Len(t, w.set, 2)
	// The real clock counts, not Config.Now, which stands still in 2021.
	assert.WithinRange(t, w.set[0], start.Add(verify.DefaultReadTimeout), time.Now().Add(verify.DefaultReadTimeout))
	assert.Zero(t, w.set[1])
}

func TestDeadlineStaysAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*http.Request{
		"headers": post(http.Header{}, strings.NewReader(payload)),
		"body":    post(signed(t, nil), iotest.ErrReader(io.ErrUnexpectedEOF)),
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		_, _, err := newVerifier(t, config()).Read(w, r)
		require.Error(t, err, name)
		assert.Len(t, w.set, 1, name)
	}
}

func TestBodyReadBeforeTheVerifier(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	for name, meddle := range map[string]func(io.ReadCloser) error{
		"read":         func(b io.ReadCloser) error { _, err := io.Copy(io.Discard, b); return err },
		"read in part": func(b io.ReadCloser) error { _, err := io.CopyN(io.Discard, b, 5); return err },
		"closed":       func(b io.ReadCloser) error { return b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan error, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.NoError(t, meddle(r.Body))
				_, _, err := v.Read(w, r)
				got <- err
				w.WriteHeader(v.Status(err))
			}))
			defer s.Close()
			conn := (&server{Server: s}).dial(t)
			write(t, conn, head(signed(t, []byte(payload)), len(payload), "")+payload)
			require.ErrorIs(t, <-got, verify.ErrBodyConsumed)
			assert.Equal(t, 500, readStatus(t, bufio.NewReader(conn)))
		})
	}
}

func TestOverHTTP2(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(newVerifier(t, config()).Middleware(echo(t)))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for body, want := range map[string]int{payload: 200, payload + "\n": 400, strings.Repeat("x", 2<<20): 413} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
		require.NoError(t, err)
		r.Header = signed(t, []byte(payload))
		res, err := s.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, 2, res.ProtoMajor)
		assert.Equal(t, want, res.StatusCode)
	}
}
