package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

func (r *readiness) ask(t *testing.T) (status int, notReady map[string][]string) {
	t.Helper()
	r.mu.Lock()
	r.asked = time.Time{} // as if half a second had passed
	r.mu.Unlock()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
	var answer struct {
		Ready    bool
		NotReady map[string][]string `json:"not_ready"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, w.Code == http.StatusOK, answer.Ready)
	return w.Code, answer.NotReady
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	r := &readiness{maxAge: time.Minute, log: testLog(t)}
	status, faults := r.ask(t)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, faults, "start")

	r.watch(h.eng, h.sweeper)
	_, faults = r.ask(t)
	require.Equal(t, []string{"events: not attached to the stream", "events: no sweep has reached the head yet"}, faults["sweep"], "one fault an item")

	require.NoError(t, h.sweeper.Attach(t.Context()))
	r.open()
	_, faults = r.ask(t)
	require.Equal(t, map[string][]string{"sweep": {"events: no sweep has reached the head yet"}}, faults)

	h.sweep()
	status, _ = r.ask(t)
	require.Equal(t, http.StatusOK, status)

	r.maxAge = time.Nanosecond
	_, faults = r.ask(t)
	require.Len(t, faults["sweep"], 1)
	require.Contains(t, faults["sweep"][0], "nothing was received for")
	r.maxAge = time.Minute

	fault := h.srv.Fault(efatest.Fault{Op: efatest.OpEvents, Status: http.StatusUnauthorized, When: efatest.When{Always: true}})
	_, err := h.sweeper.Sweep(t.Context())
	require.Error(t, err)
	_, faults = r.ask(t)
	require.Len(t, faults["sweep"], 1)
	require.Contains(t, faults["sweep"][0], "401")
	fault.Disarm()
	h.sweep()
	status, _ = r.ask(t)
	require.Equal(t, http.StatusOK, status)

	h.db.close()
	status, faults = r.ask(t)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, []string{"the database does not answer"}, faults["engine"], "neither its host nor its user")
}

func TestNotReadyWhileTheCredentialIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	r := &readiness{maxAge: time.Minute, log: testLog(t)}
	r.watch(h.eng, h.sweeper)
	r.open()
	h.sweep()
	h.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: http.StatusForbidden, When: efatest.When{Always: true}})
	h.run()
	h.answers(201, "POST", "/workflows", body(ask("w1", "ann@example.com", 1, h.srv)))
	h.until("not ready", func() bool {
		_, faults := r.ask(t)
		return faults["engine"] != nil
	})
	w, err := h.eng.Workflow(t.Context(), "w1")
	require.NoError(t, err)
	require.Equal(t, resume.StatusSending, w.Status, "nothing is settled by it")
}

func TestManyAsk(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	h.sweep()
	r := &readiness{maxAge: time.Minute, log: testLog(t)}
	r.watch(h.eng, h.sweeper)
	r.open()
	status, _ := r.ask(t)
	require.Equal(t, http.StatusOK, status)
	h.db.close()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, "the database is not asked for every request")
}
