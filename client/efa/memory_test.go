package efa_test

import (
	"io"
	"net/http"
	"strings"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func readCloser(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

func always(status int, body string) func(*http.Request, int) (int, string) {
	return func(*http.Request, int) (int, string) { return status, body }
}
