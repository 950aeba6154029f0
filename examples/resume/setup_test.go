package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/verify"
)

const adminToken = "open sesame"

// scratch is removed when the tests are over.
var scratch string

// binary builds the service for the first test that needs it.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "resume")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "replywake-resume-"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(status)
}

// process is the built service. What it logs is shown if the test fails.
type process struct {
	t          *testing.T
	url, admin string
	door       string // the push door's path
	env        []string
	log        buffer

	cmd  *exec.Cmd
	done chan struct{}
}

// newProcess is a service that talks to srv and stores in database. It is not
// started yet.
func newProcess(t *testing.T, srv *efatest.Server, database string, env ...string) *process {
	t.Helper()
	return newProcessOf(t, efaFake{srv}, "/hooks/efa", database, env...)
}

func newGoshenProcess(t *testing.T, srv *goshentest.Server, database string, env ...string) *process {
	t.Helper()
	return newProcessOf(t, &goshenFake{Server: srv}, "/hooks/goshen", database, append(env, "PROVIDER=goshen")...)
}

func newProcessOf(t *testing.T, provider fake, door, database string, env ...string) *process {
	t.Helper()
	listen, err := freeAddress(t.Context())
	require.NoError(t, err)
	admin, err := freeAddress(t.Context())
	require.NoError(t, err)
	p := &process{t: t, url: "http://" + listen, admin: "http://" + admin, door: door}
	p.env = append(cleanEnv(), provider.env()...)
	p.env = append(p.env, "DATABASE_URL="+database,
		"LISTEN_ADDR="+listen, "ADMIN_ADDR="+admin, "ADMIN_TOKEN="+adminToken,
		"SWEEP_EVERY=300ms", "LEASE=1s", "SEND_RETRY_AFTER=500ms")
	p.env = append(p.env, env...)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			text := p.log.String()
			t.Logf("log of %s:\n%s", p.url, text[max(0, len(text)-6000):])
		}
	})
	return p
}

func cleanEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
}

// start starts the process and returns at once.
func (p *process) start() {
	p.t.Helper()
	path, err := binary()
	require.NoError(p.t, err)
	p.cmd = exec.Command(path)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, &p.log, &p.log
	require.NoError(p.t, p.cmd.Start())
	done := make(chan struct{})
	p.done = done
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(done)
	}(p.cmd)
}

func (p *process) startReady() *process {
	p.t.Helper()
	p.start()
	p.until("ready", func() bool { return p.status("/readyz") == http.StatusOK })
	return p
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// terminate asks the process to end and returns its exit status.
func (p *process) terminate(within time.Duration) int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.exit(within)
}

func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		require.FailNow(p.t, "the process did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// until asks again and again until ok.
func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	require.Eventually(p.t, ok, 20*time.Second, 20*time.Millisecond, what)
}

// status asks the door; 0 if nobody answers.
func (p *process) status(path string) int {
	resp, err := local.Get(p.url + path)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// notReady is what /readyz says by its keys, each list on lines.
func (p *process) notReady() map[string]string {
	resp, err := local.Get(p.url + "/readyz")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Ready    bool
		NotReady map[string][]string `json:"not_ready"`
	}
	if resp.StatusCode != http.StatusServiceUnavailable || json.NewDecoder(resp.Body).Decode(&answer) != nil || answer.Ready {
		return nil
	}
	texts := map[string]string{}
	for key, list := range answer.NotReady {
		texts[key] = strings.Join(list, "\n")
	}
	return texts
}

// ask makes an admin request; status 0 if nobody answers.
func (p *process) ask(method, path string, body, into any) int {
	b, err := json.Marshal(body)
	require.NoError(p.t, err)
	req, err := http.NewRequestWithContext(context.Background(), method, p.admin+path, bytes.NewReader(b))
	require.NoError(p.t, err)
	req.SetBasicAuth("kim", adminToken)
	resp, err := local.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if into != nil {
		if json.NewDecoder(resp.Body).Decode(into) != nil {
			return 0
		}
	}
	return resp.StatusCode
}

func (p *process) workflow(id string) (w workflowView) {
	p.ask("GET", "/workflows/"+id, nil, &w)
	return w
}

func (p *process) unmatched() []itemView {
	var q struct{ Items []itemView }
	p.ask("GET", "/unmatched", nil, &q)
	return q.Items
}

// push signs a delivery and makes it; status 0 if nobody answers.
func (p *process) push(srv *efatest.Server, id string, at time.Time, body string) int {
	return p.pushSigned(verify.RawSecret(srv.Secret()), id, at, body)
}

func (p *process) pushSigned(secret verify.Secret, id string, at time.Time, body string) int {
	header, err := verify.Sign(secret, id, at, []byte(body))
	require.NoError(p.t, err)
	return p.post(header, strings.NewReader(body))
}

func (p *process) post(header http.Header, body io.Reader) int {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.url+p.door, body)
	require.NoError(p.t, err)
	req.Header = header.Clone()
	resp, err := local.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode < 500 {
		require.Empty(p.t, text, "an answer tells a stranger nothing")
	}
	return resp.StatusCode
}

func ask(id, counterparty string, replies int, srv *efatest.Server) request {
	return request{ID: id, InboxID: srv.Inbox(), Counterparty: counterparty, Subject: "Quote " + id, Text: "How much?", Replies: replies}
}

func sqliteIn(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "replywake.db") }
