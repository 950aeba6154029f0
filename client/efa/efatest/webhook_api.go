package efatest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	testEvery     = time.Minute
	deliveryLimit = 25
)

func (e *endpoint) row() object {
	types := e.Types
	if types == nil {
		types = []string{
			MessageReceived, MessageQueued, MessageAccepted, DeliveryUpdated,
			ApprovalRequested, ApprovalRejected, WebhookTest,
		}
	}
	status := "active"
	if e.Disabled {
		status = "disabled"
	}
	return object{
		"id": e.ID, "url": e.URL, "event_types": types, "status": status,
		"revision": e.Revision, "secret_version": e.SecretVersion,
	}
}

func (s *Server) listWebhooks(*exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := []object{}
	for _, e := range s.endpoints {
		data = append(data, e.row())
	}
	return ok(http.StatusOK, object{"data": data, "has_more": false, "next_cursor": nil})
}

func notHuman() answer {
	return failure(http.StatusForbidden, codeDenied, "only a person with the role owner or admin may do this")
}

func noWebhook() answer {
	return failure(http.StatusNotFound, codeNotFound, "no such webhook")
}

func (s *Server) createWebhook(x *exchange) answer {
	if !x.key.Human {
		return notHuman()
	}
	var in struct {
		URL   string   `json:"url"`
		Types []string `json:"event_types"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil || !publicOrigin(in.URL) {
		return s.invalid(x, codeInvalidRequest, "url must be a public HTTPS origin")
	}
	w := s.register(in.URL, s.pusher, in.Types)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.mustFind(w.ID).row()
	o["secret"] = w.Secret
	return ok(http.StatusCreated, o)
}

// publicOrigin is the guard of registration: HTTPS on port 443, no user, no
// fragment, no host that is private by its name or number.
func publicOrigin(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.User != nil || strings.Contains(raw, "#") || u.Port() != "" && u.Port() != "443" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	for _, end := range []string{".local", ".internal", "."} {
		if strings.HasSuffix(host, end) {
			return false
		}
	}
	return host != "" && host != "localhost"
}

// testWebhook answers a known-answer vector and makes one delivery of the same
// event. The stored data comes back with its keys in another order, as it may.
func (s *Server) testWebhook(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := s.find(x.r.PathValue("webhook")), s.Now()
	if e == nil {
		return noWebhook()
	}
	if wait := testEvery - now.Sub(e.tested); !e.tested.IsZero() && wait > 0 {
		a := failure(http.StatusTooManyRequests, codeRateLimited, "one test per endpoint in 60 seconds")
		a.retry = wait
		return a
	}
	e.tested = now
	ev := s.emit(Event{Type: WebhookTest, Data: object{"test": true, "webhook_id": e.ID}}, notice{only: e})
	body := string(event{id: ev.id, typ: ev.typ, data: []byte(`{"webhook_id":` + string(quote(e.ID)) + `,"test":true}`)}.pushed())
	o := object{
		"event_id": ev.id, "delivery_id": nil, "egress": "available", "body": body,
		"timestamp": strconv.FormatInt(now.Unix(), 10), "signature": sign(e.secret, ev.id, now, []byte(body)),
	}
	if s.cfg.NoEgress {
		o["egress"] = "unavailable"
	}
	for _, d := range s.deliveries {
		if d.event.id == ev.id {
			o["delivery_id"] = d.id
		}
	}
	return ok(http.StatusAccepted, o)
}

func (s *Server) controlWebhook(x *exchange) answer {
	if !x.key.Human {
		return notHuman()
	}
	var in struct {
		Action   string `json:"action"`
		Expected *int   `json:"expected_revision"`
	}
	err := json.Unmarshal(x.body, &in)
	if err != nil || in.Expected == nil || !slices.Contains([]string{actRotate, actDisable, actEnable}, in.Action) {
		return s.invalid(x, codeInvalidRequest, "action and expected_revision are required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(x.r.PathValue("webhook"))
	if e == nil {
		return noWebhook()
	}
	if *in.Expected != e.Revision {
		return failure(http.StatusConflict, codeVersionConflict, "the endpoint is at revision "+strconv.Itoa(e.Revision))
	}
	o := object{"canceled_deliveries": s.revise(e, in.Action), "note": "canceled deliveries are not sent again"}
	for name, v := range e.row() {
		o[name] = v
	}
	if in.Action == actRotate {
		o["secret"] = e.secret
	}
	return ok(http.StatusOK, o)
}

// listDeliveries is the 25 newest by next attempt time, each with its whole
// history.
func (s *Server) listDeliveries(x *exchange) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(x.r.PathValue("webhook"))
	if e == nil {
		return noWebhook()
	}
	mine := slices.DeleteFunc(slices.Clone(s.deliveries), func(d *delivery) bool { return d.endpoint != e })
	slices.SortStableFunc(mine, func(a, b *delivery) int {
		return cmp.Or(b.due.Compare(a.due), cmp.Compare(b.order, a.order))
	})
	data := []object{}
	for _, d := range mine[:min(len(mine), deliveryLimit)] {
		data = append(data, d.row())
	}
	return ok(http.StatusOK, object{"data": data})
}

func (d *delivery) row() object {
	attempts := []object{}
	for _, a := range d.attempts {
		o := object{
			"attempt_number": a.Number, "attempted_at": a.At.Format(timeFormat), "outcome": a.Outcome,
			"http_status": nil, "safe_response_excerpt": a.Excerpt,
		}
		if a.Status != 0 {
			o["http_status"] = a.Status
		}
		attempts = append(attempts, o)
	}
	return object{
		"id": d.id, "event_id": d.event.id, "state": d.state,
		"next_attempt_at": d.due.Format(timeFormat), "attempts": attempts,
	}
}
