package efatest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
)

// InMemory is a transport that hands every request to h, without a socket.
// An answer's bytes can be read as h writes them; if h panics, the answer
// breaks off where it stands, as it does behind a real server. It leaves no
// goroutine behind once h has returned.
func InMemory(h http.Handler) http.RoundTripper { return memoryTransport{h} }

type memoryTransport struct{ handler http.Handler }

// errBrokenOff is what a client sees of a connection that ended too early.
var errBrokenOff = errors.New("efatest: connection closed by the server")

func (t memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	w := newMemoryWriter()
	go t.serve(w, incoming(ctx, r), cancel)
	select {
	case <-w.started:
	case <-ctx.Done():
	}
	if err := context.Cause(r.Context()); err != nil {
		cancel()
		return nil, err
	}
	<-w.started // ctx also ends when the handler returns, which starts the answer
	if w.status == 0 {
		return nil, errBrokenOff
	}
	ended := r.Context()
	stopRead := context.AfterFunc(ended, func() { w.body.finish(context.Cause(ended)) }) //nolint:contextcheck // it reads that context
	return w.response(r, func() { stopRead(); cancel() }), nil
}

func (t memoryTransport) serve(w *memoryWriter, r *http.Request, cancel context.CancelFunc) {
	defer cancel()
	defer func() { _ = r.Body.Close() }() // as a transport must
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // the documented sentinel panic value
			log.Printf("efatest: panic in a handler: %v\n%s", p, debug.Stack())
		}
		w.end(p != nil)
	}()
	t.handler.ServeHTTP(w, r)
}

// incoming is r as a server sees it.
func incoming(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:1"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

type memoryWriter struct {
	header  http.Header
	sent    http.Header // as it was when the answer started
	status  int         // 0 until then
	started chan struct{}
	once    sync.Once
	body    memoryBody
}

func newMemoryWriter() *memoryWriter {
	w := &memoryWriter{header: http.Header{}, started: make(chan struct{})}
	w.body.cond.L = &w.body.mu
	return w
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.write(b)
}

func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

func (w *memoryWriter) end(broken bool) {
	if broken {
		w.once.Do(func() { close(w.started) })
		w.body.finish(io.ErrUnexpectedEOF)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.body.finish(io.EOF)
}

func (w *memoryWriter) response(r *http.Request, closed func()) *http.Response {
	length := int64(-1)
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	return &http.Response{
		StatusCode: w.status, Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: length, Request: r, Body: &memoryReader{&w.body, closed},
	}
}

// memoryBody holds what the handler wrote and the client has not read yet.
// Writing never waits, as into a socket's buffer.
type memoryBody struct {
	mu   sync.Mutex
	cond sync.Cond
	buf  bytes.Buffer
	err  error // what comes after the bytes
}

func (b *memoryBody) write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	defer b.cond.Broadcast()
	return b.buf.Write(p)
}

func (b *memoryBody) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.cond.Broadcast()
}

func (b *memoryBody) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.buf.Len() == 0 && b.err == nil {
		b.cond.Wait()
	}
	if b.buf.Len() > 0 {
		return b.buf.Read(p)
	}
	return 0, b.err
}

type memoryReader struct {
	body   *memoryBody
	closed func()
}

func (r *memoryReader) Read(p []byte) (int, error) { return r.body.read(p) }

func (r *memoryReader) Close() error {
	r.body.finish(http.ErrBodyReadAfterClose)
	r.closed()
	return nil
}
