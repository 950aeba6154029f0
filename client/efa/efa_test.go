package efa_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
)

const testKey = "efa_test_thekeythatmustnotshow"

// asked is what a test asserts of a request.
type asked struct {
	method, path, query string // the path as it is escaped on the wire
	key                 string // Idempotency-Key
	body                string
}

// provider answers by hand-written JSON, copied from the documents.
type provider struct {
	mu     sync.Mutex
	asked  []asked
	answer func(r *http.Request, n int) (status int, body string)
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(r.ContentLength, 0))
	_, _ = io.ReadFull(r.Body, body)
	p.mu.Lock()
	n := len(p.asked)
	p.asked = append(p.asked, asked{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Idempotency-Key"), string(body)})
	p.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	status, answer := p.answer(r, n)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

func (p *provider) requests() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// answering is a client of a provider that answers the same to everything.
func answering(t *testing.T, status int, body string) (*efa.Client, *provider) {
	t.Helper()
	return answeringBy(t, func(*http.Request, int) (int, string) { return status, body })
}

func answeringBy(t *testing.T, answer func(r *http.Request, n int) (int, string)) (*efa.Client, *provider) {
	t.Helper()
	p := &provider{answer: answer}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return newClient(t, server.URL+"/v1"), p
}

func newClient(t *testing.T, base string) *efa.Client {
	t.Helper()
	c, err := efa.New(efa.Config{BaseURL: base, Project: "prj_1", Key: testKey, Tries: 1, Timeout: 5 * time.Second})
	require.NoError(t, err)
	return c
}

// problem asserts an error that shows nothing of the key, the request's target
// or what a stranger wrote.
func problem(t *testing.T, err error) *client.Error {
	t.Helper()
	var e *client.Error
	require.ErrorAs(t, err, &e)
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		for _, secret := range []string{"mustnotshow", "127.0.0.1", "http", "xyzzy", "@"} {
			assert.NotContains(t, fmt.Sprintf(verb, err), secret)
		}
	}
	return e
}

// hostile are answers that are none, whatever the endpoint.
var hostile = map[string]string{
	"nothing":         ``,
	"HTML":            `<html><body>xyzzy</body></html>`,
	"null":            `null`,
	"array":           `[]`,
	"string":          `"xyzzy"`,
	"empty object":    `{}`,
	"another API":     `{"status":"ok"}`,
	"cut":             `{"data":[{"id":"evt_1"`,
	"trailing":        `{"data":[],"has_more":false} xyzzy`,
	"null data":       `{"data":null,"has_more":false}`,
	"data object":     `{"data":{},"has_more":false}`,
	"other letters":   `{"DATA":[],"HAS_MORE":false,"RESULT":"queued","THREAD_ID":"t","BODY_AVAILABLE":true}`,
	"wrong has_more":  `{"data":[],"has_more":"false","body_available":"yes","result":7}`,
	"rows of nothing": `{"data":[null,1,"xyzzy"],"has_more":false}`,
}

func TestStream(t *testing.T) {
	t.Parallel()
	c, err := efa.New(efa.Config{Project: "prj_1", Key: testKey})
	require.NoError(t, err)
	s := c.Stream()
	assert.Equal(t, "efa:prj_1", s.Name)
	assert.Equal(t, "https://api.emailforagents.ai/v1/projects/prj_1", s.Origin)
	assert.Equal(t, "test", s.Environment)
	assert.Equal(t, client.Fingerprint(testKey), s.Credential)
	assert.Equal(t, s, c.Source().Stream())
	assert.True(t, c.Source().Sequenced())

	for key, environment := range map[string]string{"efa_live_k": "live", "efa_k": "", "efa_test": ""} {
		c, err := efa.New(efa.Config{Project: "prj_1", Key: key, Stream: "agent a", BaseURL: "HTTP://Localhost:8080/v1/"})
		require.NoError(t, err)
		assert.Equal(t, environment, c.Stream().Environment)
		assert.Equal(t, "agent a", c.Stream().Name)
		assert.Equal(t, "http://localhost:8080/v1/projects/prj_1", c.Stream().Origin)
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := efa.New(efa.Config{BaseURL: "ftp://x", Timeout: -1})
	require.Error(t, err)
	for _, word := range []string{"base URL", "key", "timeout", "project"} {
		assert.Contains(t, err.Error(), word)
	}
	for _, project := range []string{"", "a/b", "..", "a b", "https://api.emailforagents.ai/v1/projects/p", "a?b", "%2e"} {
		_, err := efa.New(efa.Config{Project: project, Key: "k"})
		assert.Error(t, err, project)
	}
}

func TestClientPrintsNoKey(t *testing.T) {
	t.Parallel()
	config := efa.Config{Project: "prj_1", Key: testKey}
	c, err := efa.New(config)
	require.NoError(t, err)
	holder := struct {
		A any
		b *efa.Client
		c *efa.Source
	}{c, c, c.Source()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{config, &config, []efa.Config{config}, c, c.Source(), *c.Source(), holder, &holder, c.Stream()} {
			assert.NotContains(t, fmt.Sprintf(verb, value), "mustnotshow")
			assert.NotContains(t, fmt.Sprintf(verb, value), fmt.Sprintf("%x", "mustnotshow"))
		}
	}
	assert.Equal(t, "efa.Client(efa:prj_1)", c.String())
}

func TestErrorsByCode(t *testing.T) {
	t.Parallel()
	for code, tc := range map[string]struct {
		status int
		class  client.Class
		is     error
	}{
		"invalid_request":         {400, client.ClassRequest, nil},
		"not_found":               {404, client.ClassRequest, client.ErrNotFound},
		"version_conflict":        {409, client.ClassRequest, client.ErrRevision},
		"idempotency_conflict":    {409, client.ClassRequest, client.ErrConflict},
		"idempotency_expired":     {410, client.ClassRequest, client.ErrKeyExpired},
		"permission_denied":       {404, client.ClassCredential, nil},
		"unauthorized":            {400, client.ClassCredential, nil},
		"rate_limited":            {400, client.ClassQuota, nil},
		"temporarily_unavailable": {503, client.ClassService, nil},
		"something_new":           {422, client.ClassRequest, nil},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, tc.status, `{"error":{"code":"`+code+`","message":"xyzzy","retryable":false}}`)
			_, err := c.Send(t.Context(), "key", client.Sealed{Inbox: "ibx_1", Body: []byte(`{}`)})
			e := problem(t, err)
			assert.Equal(t, tc.class, e.Class)
			assert.Equal(t, code, e.Code)
			if tc.is != nil {
				assert.ErrorIs(t, err, tc.is)
			}
		})
	}
	c, _ := answering(t, 409, `{"error":{"code":"something_new","retryable":true}}`)
	_, err := c.Send(t.Context(), "key", client.Sealed{Inbox: "ibx_1", Body: []byte(`{}`)})
	assert.Equal(t, client.ClassService, problem(t, err).Class)
}
