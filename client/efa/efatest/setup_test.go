package efatest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

// api is a client that knows nothing but HTTP and JSON.
type api struct {
	t   testing.TB
	srv *efatest.Server
	key string
}

type reply struct {
	status int
	body   map[string]any
	raw    string
	header http.Header
}

func (r reply) code() any { return r.body["error"].(map[string]any)["code"] }

func (r reply) str(name string) string { s, _ := r.body[name].(string); return s }

func (r reply) data() []map[string]any {
	var out []map[string]any
	for _, row := range r.body["data"].([]any) {
		out = append(out, row.(map[string]any))
	}
	return out
}

// setup is a server without sockets whose time stands still.
func setup(t *testing.T, cfg efatest.Config) (*efatest.Server, api) {
	t.Helper()
	cfg.InMemory, cfg.Manual = true, true
	srv := efatest.NewServer(t, cfg)
	return srv, api{t, srv, srv.Key()}
}

func (a api) as(key string) api { a.key = key; return a }

// do sends one request; an answer that does not arrive whole is an error.
func (a api) do(method, path, body string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.srv.URL()+"/projects/"+a.srv.Project()+path, bytes.NewBufferString(body))
	require.NoError(a.t, err)
	req.Header.Set("Authorization", "Bearer "+a.key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := a.srv.Client().Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: resp.StatusCode, raw: string(b), header: resp.Header}
	_ = json.Unmarshal(b, &r.body) // garbage is looked at in raw
	return r, nil
}

func (a api) must(method, path, body string, header ...string) reply {
	a.t.Helper()
	r, err := a.do(method, path, body, header...)
	require.NoError(a.t, err)
	return r
}

func (a api) get(path string) reply { a.t.Helper(); return a.must("GET", path, "") }

func (a api) send(key, body string) reply {
	a.t.Helper()
	return a.must("POST", "/inboxes/"+a.srv.Inbox()+"/messages", body, "Idempotency-Key", key)
}

func (a api) thread(id, query string) reply {
	a.t.Helper()
	return a.get("/inboxes/" + a.srv.Inbox() + "/threads/" + id + "/messages?" + query)
}

func (a api) body(message string) reply {
	a.t.Helper()
	return a.get("/inboxes/" + a.srv.Inbox() + "/messages/" + message + "/body")
}

func (a api) events(query string) reply { a.t.Helper(); return a.get("/events?" + query) }

const hello = `{"to":["supplier@example.com"],"subject":"Quote Q-1","text":"please quote"}`

func query(name, value string) string { return name + "=" + url.QueryEscape(value) }

func sequences(r reply) []int {
	out := []int{}
	for _, row := range r.data() {
		out = append(out, int(row["sequence"].(float64)))
	}
	return out
}
