package goshentest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen/goshentest"
)

// api is a client that knows nothing but HTTP and JSON.
type api struct {
	t   testing.TB
	srv *goshentest.Server
	key string
}

type reply struct {
	status int
	body   map[string]any
	raw    string
	header http.Header
}

func (r reply) code() any { return r.body["error"].(map[string]any)["code"] }

func (r reply) transient() any { return r.body["error"].(map[string]any)["transient"] }

func (r reply) str(name string) string { s, _ := r.body[name].(string); return s }

func (r reply) rows(name string) []map[string]any {
	out := []map[string]any{}
	for _, row := range r.body[name].([]any) {
		out = append(out, row.(map[string]any))
	}
	return out
}

// setup is a server without sockets whose time stands still.
func setup(t *testing.T, cfg goshentest.Config) (*goshentest.Server, api) {
	t.Helper()
	cfg.InMemory, cfg.Manual = true, true
	srv := goshentest.NewServer(t, cfg)
	return srv, api{t, srv, srv.Key()}
}

func (a api) as(key string) api { a.key = key; return a }

func (a api) do(method, path, body string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.srv.URL()+path, bytes.NewBufferString(body))
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
	require.NoError(a.t, err)
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

// inbox is the path of the first inbox, escaped.
func (a api) inbox() string { return "/inboxes/" + url.QueryEscape(a.srv.Inbox()) }

func (a api) message(id string) string { return a.inbox() + "/messages/" + url.QueryEscape(id) }

func (a api) send(key, body string) reply {
	a.t.Helper()
	return a.must("POST", a.inbox()+"/messages/send", body, "Idempotency-Key", key)
}

func ids(rows []map[string]any) []string {
	list := []string{}
	for _, row := range rows {
		list = append(list, row["messageId"].(string))
	}
	return list
}

const hello = `{"to":["supplier@example.com"],"subject":"Quote Q-1","text":"please quote"}`
