package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

// house is the service's parts in this process, with nothing running by itself.
type house struct {
	t       *testing.T
	srv     *efatest.Server
	db      store
	eng     *resume.Engine
	sweeper *events.Sweeper
	admin   http.Handler
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func onBothStores(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, newHouse(t, sqliteIn(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, newHouse(t, testdb.Database(t)))
	})
}

func newHouse(t *testing.T, database string) *house {
	t.Helper()
	h := &house{t: t, srv: efatest.NewServer(t, efatest.Config{})}
	log := testLog(t)
	provider, err := efa.New(efa.Config{BaseURL: h.srv.URL(), Project: h.srv.Project(), Key: h.srv.Key()})
	require.NoError(t, err)
	h.db, err = openStore(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(h.db.close)
	h.eng, err = h.db.engine(provider, step, resume.Config{
		Inboxes: map[string][]string{h.srv.Inbox(): {h.srv.Address(h.srv.Inbox())}},
		Poll:    20 * time.Millisecond, Hold: time.Minute, Drain: time.Second, Logger: log,
	})
	require.NoError(t, err)
	inbox, err := h.db.inbox(dedupe.Config{Stream: provider.Stream(), AfterCommit: h.eng.Wake, Logger: log})
	require.NoError(t, err)
	require.NoError(t, h.eng.Migrate(t.Context()))
	h.sweeper, err = events.NewSweeper(provider.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning, Logger: log})
	require.NoError(t, err)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "# metrics") })
	h.admin = adminOnly(adminToken, adminRoutes(h.eng, provider, h.db.start, page, h.doctor(inbox), log))
	return h
}

func (h *house) doctor(inbox doctor.Inbox) *doctor.Doctor {
	doc, err := doctor.New(doctor.Config{Inbox: inbox, Sweeper: h.sweeper})
	require.NoError(h.t, err)
	return doc
}

// runs the engine until the test ends.
func (h *house) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.eng.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		require.NoError(h.t, <-done)
	})
}

func (h *house) sweep() {
	h.t.Helper()
	_, err := h.sweeper.Sweep(h.t.Context())
	require.NoError(h.t, err)
}

// until sweeps and asks until ok.
func (h *house) until(what string, ok func() bool) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		h.sweep()
		return ok()
	}, 30*time.Second, 100*time.Millisecond, what) // a sweep writes: too many would crowd out the engine
}

func (h *house) request(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth("kim", adminToken)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.admin.ServeHTTP(w, r)
	return w
}

func (h *house) answers(status int, method, path, body string) string {
	h.t.Helper()
	w := h.request(method, path, body)
	require.Equal(h.t, status, w.Code, "%s %s: %s", method, path, w.Body)
	return w.Body.String()
}

// asked starts workflows that wait for the same person.
func (h *house) asked(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.answers(201, "POST", "/workflows", body(ask(id, "ann@example.com", 1, h.srv)))
	}
	h.until("asked", func() bool { return len(h.srv.Sends()) == len(ids) })
}

func (h *house) queue() (q struct{ Items []itemView }) {
	require.NoError(h.t, json.Unmarshal([]byte(h.answers(200, "GET", "/unmatched", "")), &q))
	return q
}

func body(r request) string {
	b, _ := json.Marshal(r)
	return string(b)
}

func TestAdminToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, path := range []string{"/unmatched", "/review/", "/metrics", "/doctor", "/workflows/x", "/nowhere"} {
		for name, c := range map[string]struct {
			change  func(*http.Request)
			refused bool
		}{
			"none":            {func(r *http.Request) { r.Header.Del("Authorization") }, true},
			"empty bearer":    {header("Authorization", "Bearer "), true},
			"wrong bearer":    {header("Authorization", "Bearer open sesam"), true},
			"longer bearer":   {header("Authorization", "Bearer "+adminToken+"x"), true},
			"wrong password":  {func(r *http.Request) { r.SetBasicAuth("kim", "x") }, true},
			"token as a user": {func(r *http.Request) { r.SetBasicAuth(adminToken, "") }, true},
			"bare":            {header("Authorization", "Basic x"), true},
			"bearer":          {header("Authorization", "Bearer "+adminToken), false},
			"password":        {func(r *http.Request) { r.SetBasicAuth("", adminToken) }, false},
		} {
			w := h.request("GET", path, "", c.change)
			require.Equal(t, c.refused, w.Code == http.StatusUnauthorized, "%s with %s: %d", path, name, w.Code)
			if c.refused {
				require.Contains(t, w.Header().Get("WWW-Authenticate"), "Basic", "a browser asks for it")
				require.NotContains(t, w.Body.String(), adminToken)
			}
		}
	}
}

func TestDoctorInPlainText(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	for accept, want := range map[string]string{"text/plain": "text/plain; charset=utf-8", "*/*": "application/json"} {
		w := h.request("GET", "/doctor", "", func(r *http.Request) { r.Header.Set("Accept", accept) })
		require.Equal(t, 200, w.Code)
		require.Equal(t, want, w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, accept == "*/*", json.Valid(w.Body.Bytes()))
		require.Contains(t, w.Body.String(), string(doctor.NoPushDoor))
	}
}

func TestAdminRefusesOtherSites(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	w := h.request("POST", "/workflows", body(ask("w1", "ann@example.com", 1, h.srv)), func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	})
	require.Equal(t, http.StatusForbidden, w.Code, "a browser sends the password by itself, whoever's page asks")
}

func TestCreateWorkflow(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		first := ask("w/1 ä"[:3], "Ann@Example.com", 1, h.srv)
		h.answers(201, "POST", "/workflows", body(first))
		h.answers(200, "POST", "/workflows", body(first))
		reordered := fmt.Sprintf(` { "replies": 1, "text": "How\u0020much?", "subject": "Quote w/1", "counterparty": "Ann@Example.com", "inbox_id": %q, "id": "w\/1" } `, h.srv.Inbox())
		h.answers(200, "POST", "/workflows", reordered)
		for _, change := range []func(*request){
			func(r *request) { r.Text = "How long?" },
			func(r *request) { r.Subject = "Other" },
			func(r *request) { r.Replies = 2 },
			func(r *request) { r.Counterparty = "bob@example.com" },
		} {
			other := first
			change(&other)
			h.answers(409, "POST", "/workflows", body(other))
		}
		var view map[string]any
		require.NoError(t, json.Unmarshal([]byte(h.answers(200, "GET", "/workflows/w%2F1", "")), &view))
		require.Equal(t, []any{"w/1", 1.0, []any{}}, []any{view["id"], view["step"], view["replies_seen"]})
		require.Contains(t, view, "status")
		require.Contains(t, view, "waiting_for")
		require.NotEmpty(t, view["timeline"])
		require.Contains(t, h.answers(404, "GET", "/workflows/w2", ""), "not found")
	})
}

// An ID is used once, also when its workflow is over: the engine by itself
// would begin a new run.
func TestFinishedWorkflowIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		h.srv.OnSend(func(m efatest.Send) {
			if m.ReplyTo == "" {
				h.srv.Inbound(efatest.Mail{From: m.To[0], Thread: m.ThreadID, Text: "yes"})
			}
		})
		h.run()
		r := ask("w1", "ann@example.com", 1, h.srv)
		h.answers(201, "POST", "/workflows", body(r))
		h.until("done", func() bool {
			w, err := h.eng.Workflow(t.Context(), "w1")
			return err == nil && w.Status == resume.StatusDone
		})
		h.answers(200, "POST", "/workflows", body(r))
		r.Text = "again?"
		h.answers(409, "POST", "/workflows", body(r))
		require.Len(t, h.srv.Sends(), 2)
	})
}

func TestWorkflowsAreCreatedSideBySide(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		created := make(chan int, 60)
		for i := range cap(created) {
			go func() {
				id := fmt.Sprintf("w%d", i%20) // each three times
				created <- h.request("POST", "/workflows", body(ask(id, id+"@example.com", 1, h.srv))).Code
			}()
		}
		counts := map[int]int{}
		for range cap(created) {
			counts[<-created]++
		}
		require.Equal(t, map[int]int{201: 20, 200: 40}, counts)
	})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	good := ask("w1", "ann@example.com", 1, h.srv)
	with := func(change func(*request)) string {
		r := good
		change(&r)
		return body(r)
	}
	for name, text := range map[string]string{
		"empty":              "",
		"not JSON":           "id=w1",
		"an array":           "[]",
		"unknown field":      strings.Replace(body(good), `"id"`, `"urgent":true,"id"`, 1),
		"wrong type":         strings.Replace(body(good), `"replies":1`, `"replies":"1"`, 1),
		"more behind it":     body(good) + "{}",
		"no id":              with(func(r *request) { r.ID = "" }),
		"id with a space":    with(func(r *request) { r.ID = "w 1" }),
		"id too long":        with(func(r *request) { r.ID = strings.Repeat("w", 201) }),
		"no inbox":           with(func(r *request) { r.InboxID = "" }),
		"foreign inbox":      with(func(r *request) { r.InboxID = "ibx_other" }),
		"no counterparty":    with(func(r *request) { r.Counterparty = "" }),
		"not an address":     with(func(r *request) { r.Counterparty = "ann" }),
		"ourselves":          with(func(r *request) { r.Counterparty = h.srv.Address(h.srv.Inbox()) }),
		"no text":            with(func(r *request) { r.Text = "" }),
		"subject, two lines": with(func(r *request) { r.Subject = "a\r\nBcc: b@example.com" }),
		"no replies":         with(func(r *request) { r.Replies = 0 }),
		"too large":          with(func(r *request) { r.Text = strings.Repeat("x", maxRequest) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := h.request("POST", "/workflows", text)
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
			var p problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.NotEmpty(t, p.Error)
			require.NotContains(t, p.Error, "@", "an address is not quoted")
		})
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	h.answers(404, "GET", "/", "")
	h.answers(404, "GET", "/hooks/efa", "")
	h.answers(405, "GET", "/workflows", "")
	h.answers(405, "GET", "/unmatched/evt_1/bind", "")
	h.answers(404, "POST", "/unmatched/evt_1/bind", `{"workflow_id":"w1"}`)
	h.answers(404, "POST", "/unmatched/evt_1/dismiss", `{"reason":"spam"}`)
	h.answers(400, "POST", "/unmatched/evt_1/bind", `{}`)
	h.answers(400, "POST", "/unmatched/evt_1/bind", `{"workflow":"w1"}`)
	h.answers(400, "POST", "/unmatched/evt_1/dismiss", `{"reason":""}`)
	require.JSONEq(t, `{"items":[]}`, h.answers(200, "GET", "/unmatched", ""))
	require.Equal(t, "# metrics", h.answers(200, "GET", "/metrics", ""))
}

func TestPeopleDecide(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		h.run()
		h.asked("a", "b")
		which := h.srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "yes"})
		spam := h.srv.Inbound(efatest.Mail{From: "spam@example.com", Text: "<script>alert(1)</script>", Subject: "<b>"})
		h.until("queued", func() bool { return len(h.queue().Items) == 2 })

		byEvent := map[string]itemView{}
		for _, it := range h.queue().Items {
			byEvent[it.EventID] = it
		}
		require.Equal(t, itemView{
			EventID: which.EventID, InboxID: h.srv.Inbox(), ThreadID: which.ThreadID, MessageID: which.MessageID,
			Reason: "several_candidates", Candidates: []string{"a", "b"},
		}, byEvent[which.EventID])
		require.Equal(t, itemView{
			EventID: spam.EventID, InboxID: h.srv.Inbox(), ThreadID: spam.ThreadID, MessageID: spam.MessageID,
			Reason: "no_candidate", Candidates: []string{},
		}, byEvent[spam.EventID])

		page := h.answers(200, "GET", "/review/", "")
		require.Contains(t, page, which.MessageID)
		require.Contains(t, page, `<a href="/workflows/a">`)

		bind := "/unmatched/" + url.PathEscape(which.EventID) + "/bind"
		h.answers(404, "POST", bind, `{"workflow_id":"c"}`)
		h.answers(200, "POST", bind, `{"workflow_id":"a"}`)
		h.answers(200, "POST", bind, `{"workflow_id":"a"}`)
		h.isHandled(bind, `{"workflow_id":"b"}`, "bind", "a")
		h.isHandled("/unmatched/"+which.EventID+"/dismiss", `{"reason":"no"}`, "bind", "a")
		h.answers(200, "POST", "/workflows/a/run", "")

		dismiss := "/unmatched/" + spam.EventID + "/dismiss"
		h.answers(200, "POST", dismiss, `{"reason":"spam"}`)
		h.answers(200, "POST", dismiss, `{"reason":"spam"}`)
		h.isHandled("/unmatched/"+spam.EventID+"/bind", `{"workflow_id":"a"}`, "dismiss", "")

		require.Empty(t, h.queue().Items)
		h.until("acknowledged", func() bool { return len(h.srv.Sends()) == 3 })
		require.Equal(t, "ack: "+which.MessageID, h.srv.Sends()[2].Text)
		require.Contains(t, h.answers(200, "GET", "/review/", ""), "Nothing")

		late := h.srv.Inbound(efatest.Mail{From: "ann@example.com", Thread: which.ThreadID, Text: "and?"})
		h.until("queued", func() bool { return len(h.queue().Items) == 1 })
		require.Equal(t, "late_reply", h.queue().Items[0].Reason)
		h.answers(409, "POST", "/unmatched/"+late.EventID+"/bind", `{"workflow_id":"a"}`)
		h.srv.Check(t)
	})
}

// isHandled wants the answer that says who decided otherwise, and when.
func (h *house) isHandled(path, body, decision, workflow string) {
	h.t.Helper()
	var p problem
	require.NoError(h.t, json.Unmarshal([]byte(h.answers(409, "POST", path, body)), &p))
	require.Equal(h.t, []string{decision, workflow, "kim"}, []string{p.Decision, p.Workflow, p.By})
	require.WithinDuration(h.t, time.Now(), *p.At, time.Minute)
}

// What a person does they may take back, and workflows can be told to go on,
// to end and to wait again.
func TestPeopleChangeTheirMind(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		h.run()
		h.asked("a", "b")
		which := h.srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "yes"})
		h.until("queued", func() bool { return len(h.queue().Items) == 1 })

		of := "/unmatched/" + which.EventID
		h.answers(200, "POST", of+"/bind", `{"workflow_id":"a"}`)
		h.answers(200, "POST", of+"/undo", "")
		require.Len(t, h.queue().Items, 1)
		h.answers(200, "POST", of+"/dismiss", `{"reason":"spam"}`)
		h.answers(200, "POST", of+"/undo", "")
		h.answers(200, "POST", of+"/bind", `{"workflow_id":"a"}`)
		h.answers(200, "POST", of+"/rebind", `{"workflow_id":"b"}`)
		h.answers(200, "POST", "/workflows/b/run", "")
		h.until("acknowledged", func() bool { return len(h.srv.Sends()) == 3 })
		require.Contains(t, h.answers(409, "POST", of+"/undo", ""), "too late")
		require.Contains(t, h.answers(409, "POST", of+"/rebind", `{"workflow_id":"a"}`), "too late")

		status := func(id string) string {
			var v workflowView
			require.NoError(t, json.Unmarshal([]byte(h.answers(200, "GET", "/workflows/"+id, "")), &v))
			return v.Status
		}
		require.Contains(t, h.answers(409, "POST", "/workflows/a/reopen", ""), "not over")
		h.answers(200, "POST", "/workflows/a/cancel", "")
		require.Equal(t, "canceled", status("a"))
		h.answers(409, "POST", "/workflows/a/run", "")
		h.answers(200, "POST", "/workflows/a/reopen", "")
		require.Equal(t, "waiting", status("a"))
		for _, what := range []string{"run", "cancel", "reopen"} {
			h.answers(404, "POST", "/workflows/nobody/"+what, "")
		}

		echo := h.srv.Inbound(efatest.Mail{From: h.srv.Address(h.srv.Inbox()), Text: "to myself"})
		h.until("settled", func() bool { return strings.Contains(h.answers(200, "GET", "/settled", ""), echo.MessageID) })
		require.JSONEq(t, `{"items":[]}`, h.answers(200, "GET", "/settled?before="+echo.EventID, ""))
	})
}

// What may clear is no fault of the request's.
func TestAnotherSchemaMayClear(t *testing.T) {
	t.Parallel()
	a := &admin{log: testLog(t)}
	for _, err := range []error{resume.ErrSchema, resume.ErrStream} {
		w := httptest.NewRecorder()
		a.fail(w, httptest.NewRequest("POST", "/workflows", nil), fmt.Errorf("start: %w", err))
		require.Equal(t, 503, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
	}
}

func TestUnmatchedShowsEveryPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, testdb.Database(t)) // which commits faster than a file
	h.run()
	const n = queuePage + 5
	for range n {
		h.srv.Inbound(efatest.Mail{From: "stranger@example.com", Text: "hello"})
	}
	h.until("all are queued", func() bool { return len(h.queue().Items) == n })
}

func TestEventIDsAreEscaped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	h.run()
	in := h.srv.Inbound(efatest.Mail{From: "stranger@example.com", Text: "hello"})
	h.until("an item", func() bool { return len(h.queue().Items) == 1 })
	id := "evt/../x?&%2F" // nothing says what an event ID may hold
	h.srv.Emit(efatest.Event{ID: id, Type: efatest.MessageReceived, Inbox: h.srv.Inbox(), Data: map[string]any{
		"message_id": in.MessageID, "thread_id": in.ThreadID, "inbox_id": h.srv.Inbox(),
	}})
	h.sweep()
	h.answers(201, "POST", "/workflows", body(ask("w1", "ann@example.com", 1, h.srv)))
	h.answers(404, "POST", "/unmatched/"+url.PathEscape("evt/../y")+"/bind", `{"workflow_id":"w1"}`)
	known := h.request("POST", "/unmatched/"+url.PathEscape(id)+"/bind", `{"workflow_id":"w1"}`)
	require.NotEqual(t, 404, known.Code)
}

func TestReviewPageIsHarmless(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	evil := ask(`"><script>alert(1)</script>`, "ann@example.com", 1, h.srv)
	evil.Subject = "<img src=x onerror=alert(1)>"
	h.answers(201, "POST", "/workflows", body(evil))
	h.answers(201, "POST", "/workflows", body(ask("b", "ann@example.com", 1, h.srv)))
	h.run()
	h.until("asked", func() bool { return len(h.srv.Sends()) == 2 })
	h.srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "yes"})
	h.until("queued", func() bool { return len(h.queue().Items) == 1 })
	w := h.request("GET", "/review/", "")
	require.Contains(t, w.Body.String(), "alert(1)", "it is shown")
	require.NotContains(t, w.Body.String(), "<script")
	require.NotContains(t, w.Body.String(), "<img")
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
}

// A person reads the mail and decides in a browser, without a script.
func TestReviewInABrowser(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, h *house) {
		h.run()
		h.asked("a", `b"/<i>`)
		in := h.srv.Inbound(efatest.Mail{From: "ann@example.com", Subject: "<b>Re</b>", Text: "yes <script>alert(1)</script>"})
		h.until("queued", func() bool { return len(h.queue().Items) == 1 })
		of := "/review/" + in.EventID
		require.Contains(t, h.answers(200, "GET", "/review/", ""), `<a href="`+of+`">`)

		page := h.answers(200, "GET", of, "")
		for _, want := range []string{
			"ann@example.com", "&lt;b&gt;Re&lt;/b&gt;", "yes &lt;script&gt;alert(1)", `action="` + of + `/bind"`, `value="a"`, `value="b&#34;/&lt;i&gt;"`,
		} {
			require.Contains(t, page, want)
		}
		require.NotContains(t, page, "<script")

		form := func(status int, path string, fields url.Values) string {
			t.Helper()
			w := h.request("POST", path, fields.Encode(), func(r *http.Request) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
			})
			require.Equal(t, status, w.Code, "%s: %s", path, w.Body)
			if status == http.StatusSeeOther {
				return h.answers(200, "GET", w.Header().Get("Location"), "")
			}
			require.Contains(t, w.Header().Get("Content-Type"), "text/html")
			return w.Body.String()
		}
		form(404, of+"/bind", url.Values{"workflow_id": {"nobody"}})
		form(400, of+"/dismiss", url.Values{})
		done := form(303, of+"/bind", url.Values{"workflow_id": {`b"/<i>`}})
		require.Contains(t, done, "Nothing")
		require.Contains(t, done, `action="`+of+`/undo"`)
		require.Contains(t, form(409, of+"/bind", url.Values{"workflow_id": {"a"}}), "by kim")
		require.Contains(t, form(303, of+"/undo", nil), `<a href="`+of+`">`, "it is back")
		require.Contains(t, form(303, of+"/dismiss", url.Values{"reason": {"spam"}}), "Nothing")
		h.answers(404, "GET", of, "")

		w := h.request("POST", of+"/undo", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
		require.Equal(t, 403, w.Code, "no other site's page may decide")
	})
}

func TestReviewOfAMessageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqliteIn(t))
	h.run()
	in := h.srv.Inbound(efatest.Mail{From: "ann@example.com", Text: "yes"})
	h.until("queued", func() bool { return len(h.queue().Items) == 1 })
	h.srv.Hide(in.MessageID)
	require.Contains(t, h.answers(200, "GET", "/review/"+in.EventID, ""), "cannot be read now")
}
