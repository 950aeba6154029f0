package goshentest

import (
	"io"
	"net/http"
	"net/http/httptest"
)

// InMemory is a transport that hands every request to h, without a socket. An
// answer is seen once h has returned; a handler that panics is a connection
// that broke.
func InMemory(h http.Handler) http.RoundTripper { return memoryTransport{h} }

type memoryTransport struct{ handler http.Handler }

func (t memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w, broken := httptest.NewRecorder(), make(chan bool, 1)
	go func() {
		ok := false
		defer func() {
			_ = recover()
			_ = in.Body.Close()
			broken <- !ok
		}()
		t.handler.ServeHTTP(w, in)
		ok = true
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case b := <-broken:
		if b {
			return nil, io.ErrUnexpectedEOF
		}
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
