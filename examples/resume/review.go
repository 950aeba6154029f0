package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/resume"
)

// Pages for a browser: what people must decide, each mail with the workflows it
// may belong to and what can be done. Without scripts, and with a policy that
// allows none, for what they show was written by strangers.
const reviewStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:45rem;margin:2rem auto;padding:0 1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid #999;padding-left:1rem}
form{display:inline}`

var reviewPages = template.Must(template.New("").Funcs(template.FuncMap{
	"path": url.PathEscape, "style": func() template.CSS { return reviewStyle },
}).Parse(`
{{define "top"}}<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mail for a person</title>
<style>{{style}}</style>{{end}}

{{define "list"}}{{template "top"}}
<h1>Mail for a person</h1>
{{- with .Done}}
<p>Done. <form method="post" action="/review/{{path .}}/undo"><button>Undo</button></form> A bind can be undone for 10 seconds.</p>
{{- end}}
{{- range .Items}}
<section>
<h2><a href="/review/{{path .EventID}}">{{.EventID}}</a></h2>
<p>{{.Reason}}: message {{.Message}} in thread {{.Thread}} of inbox {{.Inbox}}, {{.At.UTC.Format "2006-01-02 15:04:05"}} UTC</p>
{{template "candidates" .}}
</section>
{{- else}}
<p>Nothing: every message has its place.</p>
{{- end}}
</html>
{{end}}

{{define "candidates"}}<ul>
{{- range .Candidates}}
<li><a href="/workflows/{{path .Workflow}}">{{.Workflow}}</a>: {{.Status}}, step {{.Step}}, “{{.Subject}}”</li>
{{- end}}
</ul>{{end}}

{{define "item"}}{{template "top"}}
<p><a href="/review/">All</a></p>
<h1>{{.EventID}}</h1>
<p>{{.Reason}}: message {{.Message}} in thread {{.Thread}} of inbox {{.Inbox}}, {{.At.UTC.Format "2006-01-02 15:04:05"}} UTC</p>
{{with .Mail}}<p>From {{.From}}: “{{.Subject}}”</p>
<pre>{{.Text}}</pre>{{else}}<p>The message cannot be read now.</p>{{end}}
{{template "candidates" .}}
{{- $event := .EventID}}
{{- range .Candidates}}
<form method="post" action="/review/{{path $event}}/bind"><input type="hidden" name="workflow_id" value="{{.Workflow}}"><button>Give it to {{.Workflow}}</button></form>
{{- end}}
<form method="post" action="/review/{{path .EventID}}/bind"><input name="workflow_id" aria-label="workflow" placeholder="another workflow" required><button>Give it to that one</button></form>
<form method="post" action="/review/{{path .EventID}}/dismiss"><input name="reason" aria-label="reason" placeholder="reason" required><button>Dismiss</button></form>
</html>
{{end}}

{{define "problem"}}{{template "top"}}
<p><a href="/review/">All</a></p>
<p>{{.}}</p>
</html>
{{end}}
`))

var reviewPolicy = func() string {
	sum := sha256.Sum256([]byte(reviewStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

// showPage answers a page.
func showPage(w http.ResponseWriter, status int, name string, data any) {
	head(w, "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", reviewPolicy)
	w.Header().Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	_ = reviewPages.ExecuteTemplate(w, name, data)
}

// review is the pages' routes.
func (a *admin) review(mux *http.ServeMux) {
	mux.HandleFunc("GET /review/{$}", a.reviewList)
	mux.HandleFunc("GET /review/{event}", a.reviewItem)
	mux.HandleFunc("POST /review/{event}/bind", a.reviewDo(func(ctx context.Context, event string, r *http.Request) error {
		return a.eng.Bind(ctx, event, r.PostFormValue("workflow_id"), person(r))
	}))
	mux.HandleFunc("POST /review/{event}/dismiss", a.reviewDo(func(ctx context.Context, event string, r *http.Request) error {
		if r.PostFormValue("reason") == "" {
			return badRequest("missing: reason")
		}
		return a.eng.Dismiss(ctx, event, r.PostFormValue("reason"), person(r))
	}))
	mux.HandleFunc("POST /review/{event}/undo", a.reviewDo(func(ctx context.Context, event string, r *http.Request) error {
		return a.eng.Undo(ctx, event, person(r))
	}))
}

func (a *admin) reviewList(w http.ResponseWriter, r *http.Request) {
	queue, err := a.queue(r.Context())
	if err != nil {
		a.reviewFail(w, r, err)
		return
	}
	showPage(w, http.StatusOK, "list", struct {
		Items []resume.Item
		Done  string
	}{queue, r.URL.Query().Get("done")})
}

// reviewItem shows one mail: a person can only place what they have read.
func (a *admin) reviewItem(w http.ResponseWriter, r *http.Request) {
	queue, err := a.queue(r.Context())
	i := slices.IndexFunc(queue, func(it resume.Item) bool { return it.EventID == r.PathValue("event") })
	if err == nil && i < 0 {
		err = resume.ErrNotFound
	}
	if err != nil {
		a.reviewFail(w, r, err)
		return
	}
	showPage(w, http.StatusOK, "item", struct {
		resume.Item
		Mail *mailView
	}{queue[i], a.read(r.Context(), queue[i])})
}

// mailView is a mail as a person reads it.
type mailView struct{ From, Subject, Text string }

// read reads an item's message; nil if that cannot be had.
func (a *admin) read(ctx context.Context, it resume.Item) *mailView {
	for m, err := range a.mail.Messages(ctx, it.Inbox, it.Thread) {
		if err != nil {
			break
		}
		if m.ID != it.Message {
			continue
		}
		l := &mailView{From: m.From.Text(), Subject: m.Subject.Text()}
		if body, err := a.mail.Body(ctx, it.Inbox, m); err == nil {
			l.Text = textOf(body)
		}
		return l
	}
	return nil
}

func textOf(b client.Body) string {
	if text := b.Text.Text(); text != "" || b.HTML.Len() == 0 {
		return text
	}
	return b.HTML.Text() // as it was written, tags and all
}

// reviewDo does what a form asks for and goes back to the list.
func (a *admin) reviewDo(do func(ctx context.Context, event string, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		event := r.PathValue("event")
		if err := do(r.Context(), event, r); err != nil {
			a.reviewFail(w, r, err)
			return
		}
		http.Redirect(w, r, "/review/?done="+url.QueryEscape(event), http.StatusSeeOther)
	}
}

func (a *admin) reviewFail(w http.ResponseWriter, r *http.Request, err error) {
	status, p := a.problemOf(r, err)
	if h, ok := errors.AsType[*resume.HandledError](err); ok {
		p.Error = h.Error()
	}
	showPage(w, status, "problem", p.Error)
}
