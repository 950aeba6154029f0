package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/resume"
)

// adminOnly lets the token in: as a bearer token, or as the password of Basic
// under any user name, so that a browser can ask for it.
func adminOnly(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	// A browser sends a Basic password by itself, whoever's page asks.
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, password, ok := r.BasicAuth(); ok {
			got = password
		}
		have := sha256.Sum256([]byte(got))
		if subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
			w.Header().Add("WWW-Authenticate", `Basic realm="replywake", charset="UTF-8"`)
			w.Header().Add("WWW-Authenticate", `Bearer realm="replywake"`)
			writeJSON(w, http.StatusUnauthorized, problem{Error: "the admin token is missing or wrong"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// person is who decides: the user name a browser was given.
func person(r *http.Request) string {
	if name, _, ok := r.BasicAuth(); ok && name != "" {
		return name
	}
	return "admin"
}

// admin is what people and other programs of ours may do.
type admin struct {
	eng   *resume.Engine
	mail  resume.Mail
	start func(context.Context, resume.Start) error
	log   *slog.Logger
}

func adminRoutes(eng *resume.Engine, mail resume.Mail, start func(context.Context, resume.Start) error,
	metrics http.Handler, doc *doctor.Doctor, log *slog.Logger,
) http.Handler {
	a := &admin{eng: eng, mail: mail, start: start, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /workflows", a.create)
	mux.HandleFunc("GET /workflows/{id}", a.show)
	mux.HandleFunc("POST /workflows/{id}/run", a.change("run", eng.RunNow))
	mux.HandleFunc("POST /workflows/{id}/cancel", a.change("cancel", eng.Cancel))
	mux.HandleFunc("POST /workflows/{id}/reopen", a.change("reopen", eng.Reopen))
	mux.HandleFunc("GET /unmatched", a.unmatched)
	mux.HandleFunc("GET /settled", a.settled)
	mux.HandleFunc("POST /unmatched/{event}/bind", a.bindBy("bind", eng.Bind))
	mux.HandleFunc("POST /unmatched/{event}/rebind", a.bindBy("rebind", eng.Rebind))
	mux.HandleFunc("POST /unmatched/{event}/dismiss", a.dismiss)
	mux.HandleFunc("POST /unmatched/{event}/undo", a.undo)
	a.review(mux)
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /doctor", func(w http.ResponseWriter, r *http.Request) { examine(w, r, doc) })
	return mux
}

// examine shows the doctor's report, in plain text to who asks for that.
func examine(w http.ResponseWriter, r *http.Request, doc *doctor.Doctor) {
	report := doc.Report(r.Context())
	if strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
		head(w, "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, report.String())
		return
	}
	writeJSON(w, http.StatusOK, report)
}

var errNotAttached = errors.New("the stream has no position yet")

// onceAttached refuses, for now, what would send mail whose replies could count
// as history.
func onceAttached(s *events.Sweeper, start func(context.Context, resume.Start) error) func(context.Context, resume.Start) error {
	return func(ctx context.Context, what resume.Start) error {
		if !s.Health().Attached {
			return errNotAttached
		}
		return start(ctx, what)
	}
}

func (a *admin) create(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := readJSON(w, r, &req); err != nil {
		a.fail(w, r, err)
		return
	}
	if err := req.check(); err != nil {
		a.fail(w, r, err)
		return
	}
	err := a.start(r.Context(), req.start())
	if errors.Is(err, resume.ErrExists) {
		a.existing(w, r, req)
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, map[string]string{"id": req.ID})
}

func (r request) check() error {
	var missing []string
	for _, f := range []struct{ name, value string }{
		{"id", r.ID}, {"inbox_id", r.InboxID}, {"counterparty", r.Counterparty}, {"subject", r.Subject}, {"text", r.Text},
	} {
		if f.value == "" {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return badRequest("missing: " + strings.Join(missing, ", "))
	}
	if r.Replies < 1 {
		return badRequest("replies must be at least 1")
	}
	return nil
}

// existing answers a request for an ID that is taken: the same again is fine.
func (a *admin) existing(w http.ResponseWriter, r *http.Request, req request) {
	wf, err := a.eng.Workflow(r.Context(), req.ID)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	var s state
	if json.Unmarshal(wf.State, &s) != nil || s.Request != req {
		writeJSON(w, http.StatusConflict, problem{Error: "this id was used with another request"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"id": req.ID})
}

type workflowView struct {
	ID          string       `json:"id"`
	Status      string       `json:"status"`
	Step        int64        `json:"step"`
	RepliesSeen []string     `json:"replies_seen"`
	WaitingFor  string       `json:"waiting_for"`
	Timeline    []momentView `json:"timeline"`
}

type momentView struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Step   int64     `json:"step"`
	Detail string    `json:"detail"`
}

func (a *admin) show(w http.ResponseWriter, r *http.Request) {
	ctx, id := r.Context(), r.PathValue("id")
	wf, err := a.eng.Workflow(ctx, id)
	seen, err2 := a.eng.Seen(ctx, id)
	timeline, err3 := a.eng.Timeline(ctx, id)
	if err := errors.Join(err, err2, err3); err != nil {
		a.fail(w, r, err)
		return
	}
	view := workflowView{
		ID: wf.ID, Status: string(wf.Status), Step: wf.Step, WaitingFor: wf.WaitingFor(),
		RepliesSeen: seen, Timeline: []momentView{},
	}
	for _, m := range timeline {
		view.Timeline = append(view.Timeline, momentView(m))
	}
	writeJSON(w, http.StatusOK, view)
}

type itemView struct {
	EventID    string   `json:"event_id"`
	InboxID    string   `json:"inbox_id"`
	ThreadID   string   `json:"thread_id"`
	MessageID  string   `json:"message_id"`
	Reason     string   `json:"reason"`
	Candidates []string `json:"candidates"`
}

func (a *admin) unmatched(w http.ResponseWriter, r *http.Request) {
	queue, err := a.queue(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": viewsOf(queue)})
}

// settled shows what no workflow got and nobody decided on, newest first: the
// newest page, or the one behind the item of ?before. It can be bound too.
func (a *admin) settled(w http.ResponseWriter, r *http.Request) {
	items, err := a.eng.Settled(r.Context(), r.URL.Query().Get("before"), queuePage)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": viewsOf(items)})
}

func viewsOf(all []resume.Item) []itemView {
	items := []itemView{}
	for _, it := range all {
		v := itemView{EventID: it.EventID, InboxID: it.Inbox, ThreadID: it.Thread, MessageID: it.Message, Reason: it.Reason, Candidates: []string{}}
		for _, c := range it.Candidates {
			v.Candidates = append(v.Candidates, c.Workflow)
		}
		items = append(items, v)
	}
	return items
}

const queuePage = 50

// queue reads all pages of what people must decide.
func (a *admin) queue(ctx context.Context) ([]resume.Item, error) {
	var all []resume.Item
	for after := ""; ; after = all[len(all)-1].EventID {
		items, err := a.eng.Queue(ctx, after, queuePage)
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); len(items) < queuePage {
			return all, nil
		}
	}
}

func (a *admin) bindBy(decision string, bind func(ctx context.Context, eventID, workflow, by string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			WorkflowID string `json:"workflow_id"`
		}
		err := readJSON(w, r, &in)
		if err == nil && in.WorkflowID == "" {
			err = badRequest("missing: workflow_id")
		}
		if err == nil {
			err = bind(r.Context(), r.PathValue("event"), in.WorkflowID, person(r))
		}
		a.decided(w, r, decision, err)
	}
}

func (a *admin) undo(w http.ResponseWriter, r *http.Request) {
	a.decided(w, r, "undo", a.eng.Undo(r.Context(), r.PathValue("event"), person(r)))
}

func (a *admin) dismiss(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Reason string `json:"reason"`
	}
	err := readJSON(w, r, &in)
	if err == nil && in.Reason == "" {
		err = badRequest("missing: reason")
	}
	if err == nil {
		err = a.eng.Dismiss(r.Context(), r.PathValue("event"), in.Reason, person(r))
	}
	a.decided(w, r, "dismiss", err)
}

func (a *admin) decided(w http.ResponseWriter, r *http.Request, decision string, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"event_id": r.PathValue("event"), "decision": decision})
}

// change is what a person may do to a workflow.
func (a *admin) change(what string, do func(ctx context.Context, workflow, by string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if err := do(r.Context(), id, person(r)); err != nil {
			a.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"id": id, "did": what})
	}
}

// problem is an answer that is no success.
type problem struct {
	Error    string     `json:"error"`
	Decision string     `json:"decision,omitempty"` // what was decided before
	Workflow string     `json:"workflow_id,omitempty"`
	By       string     `json:"by,omitempty"`
	At       *time.Time `json:"at,omitempty"`
}

type badRequest string

func (b badRequest) Error() string { return string(b) }

// fail answers an error.
func (a *admin) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, p := a.problemOf(r, err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, p)
}

// problemOf says what an error is to who asked. A 4xx is for what the same
// request would meet again; everything else may clear, and is 503.
func (a *admin) problemOf(r *http.Request, err error) (status int, p problem) {
	if bad, ok := errors.AsType[badRequest](err); ok {
		return http.StatusBadRequest, problem{Error: string(bad)}
	}
	if h, ok := errors.AsType[*resume.HandledError](err); ok {
		return http.StatusConflict, problem{Error: "it was handled before", Decision: h.Decision, Workflow: h.Workflow, By: h.By, At: &h.At}
	}
	switch {
	case errors.Is(err, resume.ErrNotFound):
		return http.StatusNotFound, problem{Error: "not found"}
	case errors.Is(err, resume.ErrTerminal):
		return http.StatusConflict, problem{Error: "the workflow is over"}
	case errors.Is(err, resume.ErrNotOver):
		return http.StatusConflict, problem{Error: "the workflow is not over"}
	case errors.Is(err, resume.ErrTooLate):
		return http.StatusConflict, problem{Error: "too late: a run has it, or may have it"}
	case errors.Is(err, resume.Err) && !errors.Is(err, resume.ErrSchema) && !errors.Is(err, resume.ErrStream):
		return http.StatusBadRequest, problem{Error: err.Error()} // what Start finds wrong; it quotes nothing
	}
	a.log.Warn("a request could not be answered", "path", r.URL.Path, "error", err)
	return http.StatusServiceUnavailable, problem{Error: "not now: try again"}
}

const maxRequest = 1 << 20

// readJSON reads one JSON object with known fields only.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest(fmt.Sprintf("the body is not the JSON that is wanted: %v", err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("there is something behind the JSON")
	}
	return nil
}

func head(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	head(w, "application/json")
	w.WriteHeader(status)
	encode := json.NewEncoder(w)
	encode.SetEscapeHTML(false) // an ID is to be copied, and no browser takes JSON for a page
	_ = encode.Encode(v)
}
