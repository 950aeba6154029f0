package main

import (
	"html/template"
	"net/http"
	"net/url"
)

// A plain page: what people must decide, with the workflows it may belong to.
var reviewPage = template.Must(template.New("review").Funcs(template.FuncMap{"path": url.PathEscape}).Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mail for a person</title>
<h1>Mail for a person</h1>
{{- range .}}
<section>
<h2>{{.EventID}}</h2>
<p>{{.Reason}}: message {{.Message}} in thread {{.Thread}} of inbox {{.Inbox}}, {{.At.UTC.Format "2006-01-02 15:04:05"}} UTC</p>
<ul>
{{- range .Candidates}}
<li><a href="/workflows/{{path .Workflow}}">{{.Workflow}}</a>: {{.Status}}, step {{.Step}}, “{{.Subject}}”</li>
{{- end}}
</ul>
</section>
{{- else}}
<p>Nothing: every message has its place.</p>
{{- end}}
</html>
`))

func (a *admin) review(w http.ResponseWriter, r *http.Request) {
	queue, err := a.queue(r.Context())
	if err != nil {
		a.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_ = reviewPage.Execute(w, queue)
}
