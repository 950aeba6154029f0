package efa_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
)

// What package resume wants of a provider.
var _ interface {
	Seal(inbox string, out client.Outgoing) (client.Sealed, error)
	Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error)
	Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error]
	Body(ctx context.Context, inbox string, m client.Message) (client.Body, error)
	Stream() events.Stream
} = (*efa.Client)(nil)

func outgoing() client.Outgoing {
	return client.Outgoing{To: []string{"ann@example.com"}, Subject: "Quote <request> Q-1042", Text: "Hello\nthere"}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 500, ``)
	sealed, err := c.Seal("ibx_1", outgoing())
	require.NoError(t, err)
	assert.Equal(t, client.Sealed{
		Inbox: "ibx_1",
		Body:  []byte(`{"to":["ann@example.com"],"subject":"Quote <request> Q-1042","text":"Hello\nthere"}`),
	}, sealed)

	out := outgoing()
	out.HTML, out.ReplyTo = "<p>Hello</p>", "msg_1"
	sealed, err = c.Seal("ibx_1", out)
	require.NoError(t, err)
	assert.Equal(t, "msg_1", sealed.ReplyTo)
	assert.Contains(t, string(sealed.Body), `,"html":"<p>Hello</p>","reply_to_message_id":"msg_1"}`)
	assert.True(t, json.Valid(sealed.Body))
	assert.Empty(t, p.requests())
}

func TestSealTakesEveryBareAddress(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 500, ``)
	for _, address := range []string{"a@b.example", "A.B+c@D.example", `"a b"@c.example`, "jörg@bücher.example", "a@[192.0.2.1]"} {
		_, err := c.Seal("ibx_1", client.Outgoing{To: []string{address}, Text: "x"})
		assert.NoError(t, err, address)
	}
}

func TestSealReportsFaultsAndQuotesNothing(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 500, ``)
	for name, tc := range map[string]struct {
		spoil func(*client.Outgoing)
		says  string
	}{
		"nobody":           {func(o *client.Outgoing) { o.To = nil }, "no recipient"},
		"empty recipient":  {func(o *client.Outgoing) { o.To = []string{""} }, "recipient 1"},
		"second recipient": {func(o *client.Outgoing) { o.To = []string{"a@b.example", "xyzzy"} }, "recipient 2"},
		"display name":     {func(o *client.Outgoing) { o.To = []string{"xyzzy <a@b.example>"} }, "recipient 1"},
		"comment":          {func(o *client.Outgoing) { o.To = []string{"a@b.example (xyzzy)"} }, "recipient 1"},
		"two in one":       {func(o *client.Outgoing) { o.To = []string{"xyzzy@b.example, c@d.example"} }, "recipient 1"},
		"folded recipient": {func(o *client.Outgoing) { o.To = []string{"xyzzy@b.example\r\n"} }, "recipient 1"},
		"space":            {func(o *client.Outgoing) { o.To = []string{" xyzzy@b.example"} }, "recipient 1"},
		"subject CRLF":     {func(o *client.Outgoing) { o.Subject = "xyzzy\r\nBcc: a@b.example" }, "subject"},
		"subject LF":       {func(o *client.Outgoing) { o.Subject = "xyzzy\n" }, "subject"},
		"subject NUL":      {func(o *client.Outgoing) { o.Subject = "xyzzy\x00" }, "subject"},
		"subject LS":       {func(o *client.Outgoing) { o.Subject = "xyzzy\u2028" }, "subject"},
		"subject bytes":    {func(o *client.Outgoing) { o.Subject = "xyzzy\xff" }, "subject is not UTF-8"},
		"text bytes":       {func(o *client.Outgoing) { o.Text = "xyzzy\xff" }, "text is not UTF-8"},
		"HTML bytes":       {func(o *client.Outgoing) { o.HTML = "xyzzy\xff" }, "html is not UTF-8"},
		"reply ID":         {func(o *client.Outgoing) { o.ReplyTo = "xyzzy yes" }, "reply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := outgoing()
			tc.spoil(&out)
			_, err := c.Seal("ibx_1", out)
			e := problem(t, err)
			assert.Equal(t, client.ClassRequest, e.Class)
			assert.Contains(t, err.Error(), tc.says)
			assert.False(t, client.IsRetryable(err))
		})
	}
	_, err := c.Seal("", client.Outgoing{Subject: "\n", Text: "\xff"})
	for _, says := range []string{"inbox", "recipient", "subject", "text"} {
		assert.Contains(t, err.Error(), says)
	}
}

func seal(t *testing.T, c *efa.Client) client.Sealed {
	t.Helper()
	sealed, err := c.Seal("ibx_1", outgoing())
	require.NoError(t, err)
	return sealed
}

func TestSend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		want   client.Outcome
	}{
		"queued":       {`{"result":"queued","thread_id":"thd_1"}`, client.Outcome{Thread: "thd_1"}},
		"with message": {`{"result":"queued","message_id":"msg_1","thread_id":"thd_1","x":1}`, client.Outcome{Thread: "thd_1", Message: "msg_1"}},
		"held":         {`{"result":"approval_required","draft_id":"drf_1","approval_id":"apr_1"}`, client.Outcome{Held: true, Approval: "apr_1", Draft: "drf_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := answering(t, 202, tc.answer)
			sealed := seal(t, c)
			outcome, err := c.Send(t.Context(), "wf-1-step-2", sealed)
			require.NoError(t, err)
			assert.Equal(t, tc.want, outcome)
			assert.Equal(t, []asked{{
				method: "POST", path: "/v1/projects/prj_1/inboxes/ibx_1/messages",
				key: "wf-1-step-2", body: string(sealed.Body),
			}}, p.requests())
		})
	}
}

func TestSendAnsweredByNoOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	bad := map[string]string{
		"unknown result":   `{"result":"xyzzy","thread_id":"thd_1"}`,
		"no result":        `{"thread_id":"thd_1"}`,
		"no thread":        `{"result":"queued"}`,
		"thread of no use": `{"result":"queued","thread_id":"a\nb"}`,
		"no approval":      `{"result":"approval_required","draft_id":"drf_1"}`,
	}
	for name, body := range hostile {
		bad[name] = body
	}
	for name, body := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := answering(t, 202, body)
			outcome, err := c.Send(t.Context(), "key", seal(t, c))
			require.ErrorIs(t, err, client.ErrBadAnswer)
			assert.True(t, client.IsRetryable(problem(t, err)))
			assert.Empty(t, outcome)
			assert.Len(t, p.requests(), 1)
		})
	}
}

func TestSendIsNeverRepeatedHere(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 503, `{"error":{"code":"temporarily_unavailable","message":"A matching send is already in progress"}}`)
	_, err := c.Send(t.Context(), "key", seal(t, c))
	e := problem(t, err)
	assert.Equal(t, client.ClassService, e.Class)
	assert.Equal(t, "efa: send a message: 503 temporarily_unavailable", e.Error())
	assert.Len(t, p.requests(), 1)
}

func TestSendCutInTheMiddle(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"result":"queued","thr`))
	}))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL)
	_, err := c.Send(t.Context(), "key", seal(t, c))
	require.ErrorIs(t, err, client.ErrUnavailable)
	assert.True(t, client.IsRetryable(problem(t, err)))
}

func TestSendRefusesWithoutAKey(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 202, `{}`)
	for _, key := range []string{"", "a b", "a\r\nX: y", strings.Repeat("k", 300)} {
		_, err := c.Send(t.Context(), key, seal(t, c))
		assert.Equal(t, client.ClassRequest, problem(t, err).Class)
	}
	assert.Empty(t, p.requests())
}

func collect(seq iter.Seq2[client.Message, error]) (list []client.Message, err error) {
	for m, e := range seq {
		if e != nil {
			err = e
			continue
		}
		list = append(list, m)
	}
	return list, err
}

func texts(list []client.Untrusted) (out []string) {
	for _, u := range list {
		out = append(out, u.Text())
	}
	return out
}

func TestMessages(t *testing.T) {
	t.Parallel()
	pages := []string{
		`{"data":[{"id":"msg_1","direction":"outbound","from":{"email":"agent@example.com"},"to":[{"email":"ann@example.com"}],"subject":"Quote","status":"delivered"}],"has_more":true,"next_cursor":"c/2"}`,
		`{"data":[{"id":"msg_2","direction":"inbound","from":{"email":"Ann@example.com","name":"Ann"},"to":[],"subject":"Re: Quote","received_at":"2026-09-23T14:40:11Z","status":"delivered"}],"has_more":false,"next_cursor":null}`,
	}
	c, p := answeringBy(t, func(_ *http.Request, n int) (int, string) { return 200, pages[n] })
	list, err := collect(c.Messages(t.Context(), "ibx_1", "thd_1"))
	require.NoError(t, err)
	const path = "/v1/projects/prj_1/inboxes/ibx_1/threads/thd_1/messages"
	assert.Equal(t, []asked{
		{method: "GET", path: path, query: "limit=100"},
		{method: "GET", path: path, query: "cursor=c%2F2&limit=100"},
	}, p.requests())
	require.Len(t, list, 2)
	sent, got := list[0], list[1]
	assert.Equal(t, "msg_1", sent.ID)
	assert.Equal(t, "ibx_1", sent.Inbox)
	assert.Equal(t, "thd_1", sent.Thread)
	assert.True(t, sent.Outbound)
	assert.Equal(t, client.DeliveryDelivered, sent.Delivery)
	assert.Equal(t, []string{"ann@example.com"}, texts(sent.To))
	assert.False(t, got.Outbound)
	assert.Equal(t, "Ann@example.com", got.From.Text())
	assert.Equal(t, "Re: Quote", got.Subject.Text())
	assert.Equal(t, time.Date(2026, 9, 23, 14, 40, 11, 0, time.UTC), got.At)
	assert.Equal(t, client.DeliveryUnknown, got.Delivery, "only what was sent is delivered")
}

func TestMessagesReadsAddressesInEveryShape(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		`"ann@example.com"`:                               "ann@example.com",
		`"Ann <ann@example.com>"`:                         "ann@example.com",
		`{"email":"ann@example.com"}`:                     "ann@example.com",
		`{"address":"ann@example.com"}`:                   "ann@example.com",
		`{"email":"Ann <ann@example.com>"}`:               "ann@example.com",
		`[{"email":"ann@example.com"}]`:                   "ann@example.com",
		`["ann@example.com"]`:                             "ann@example.com",
		`["ann@example.com",{"email":"bob@example.com"}]`: "ann@example.com, bob@example.com",
		`"ann@example.com, bob@example.com"`:              "ann@example.com, bob@example.com",
		`null`:                                            "", `7`: "7", `[]`: "", `{}`: "", `[null,{},""]`: "", `true`: "",
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, `{"data":[{"id":"m","from":`+from+`,"to":`+from+`}],"has_more":false}`)
			list, err := collect(c.Messages(t.Context(), "ibx_1", "thd_1"))
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.Equal(t, want, list[0].From.Text())
			assert.Equal(t, want, strings.Join(texts(list[0].To), ", "))
			if strings.Contains(want, ", ") {
				_, err := client.NormalizeAddress(list[0].From.Text())
				assert.Error(t, err, "two senders may stand for none")
			}
		})
	}
}

func TestMessagesEndsWhenTheListingGoesRound(t *testing.T) {
	t.Parallel()
	row := `{"id":"msg_1","direction":"inbound","from":{"email":"a@b.example"}}`
	for name, tc := range map[string]struct {
		cursors  []string
		requests int
	}{
		"null":         {[]string{`null`}, 1},
		"missing":      {[]string{`{}`}, 1},
		"empty":        {[]string{`""`}, 1},
		"the word":     {[]string{`"null"`}, 1},
		"same twice":   {[]string{`"a"`, `"a"`}, 2},
		"in a circle":  {[]string{`"a"`, `"b"`, `"a"`}, 3},
		"without end":  {nil, 1000},
		"number twice": {[]string{`7`, `7`}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, requests := inMemory(t, func(_ *http.Request, n int) (int, string) {
				cursor := fmt.Sprintf("%q", fmt.Sprint("c", n))
				if tc.cursors != nil {
					cursor = tc.cursors[n]
				}
				return 200, `{"data":[` + row + `],"has_more":true,"next_cursor":` + cursor + `}`
			})
			_, err := collect(c.Messages(t.Context(), "ibx_1", "thd_1"))
			require.ErrorIs(t, err, events.ErrNoProgress)
			problem(t, err)
			assert.Equal(t, tc.requests, *requests)
		})
	}
}

func TestMessagesGoesOnBehindAnEmptyPage(t *testing.T) {
	t.Parallel()
	pages := []string{
		`{"data":[],"has_more":true,"next_cursor":"2"}`,
		`{"data":[{"id":"msg_1"}],"has_more":false}`,
	}
	c, _ := answeringBy(t, func(_ *http.Request, n int) (int, string) { return 200, pages[n] })
	list, err := collect(c.Messages(t.Context(), "ibx_1", "thd_1"))
	require.NoError(t, err)
	assert.Len(t, list, 1)
}

func TestMessagesStopsWithItsReader(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, `{"data":[{"id":"a"},{"id":"b"}],"has_more":true,"next_cursor":"2"}`)
	for m, err := range c.Messages(t.Context(), "ibx_1", "thd_1") {
		require.NoError(t, err)
		assert.Equal(t, "a", m.ID)
		break
	}
	assert.Len(t, p.requests(), 1)
}

func TestMessagesOfAnotherShape(t *testing.T) {
	t.Parallel()
	bad := map[string]string{"no ID": `{"data":[{"direction":"inbound"}],"has_more":false}`}
	for name, body := range hostile {
		bad[name] = body
	}
	for name, body := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, body)
			list, err := collect(c.Messages(t.Context(), "ibx_1", "thd_1"))
			require.ErrorIs(t, err, client.ErrBadAnswer)
			problem(t, err)
			assert.Empty(t, list)
		})
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer, text, html string
		available          bool
	}{
		"text":      {`{"text":"yes","html":"<p>yes</p>","body_available":true}`, "yes", "<p>yes</p>", true},
		"no text":   {`{"text":null,"html":null,"body_available":true}`, "", "", true},
		"not there": {`{"text":null,"html":null,"body_available":false}`, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := answering(t, 200, tc.answer)
			body, err := c.Body(t.Context(), "ibx/1", client.Message{ID: "<a@b>"})
			require.NoError(t, err)
			assert.Equal(t, tc.text, body.Text.Text())
			assert.Equal(t, tc.html, body.HTML.Text())
			assert.Equal(t, tc.available, body.Available)
			assert.Equal(t, "/v1/projects/prj_1/inboxes/ibx%2F1/messages/%3Ca%40b%3E/body", p.requests()[0].path)
		})
	}
	for _, id := range []string{"", ".", ".."} {
		c, p := answering(t, 200, `{}`)
		_, err := c.Body(t.Context(), "ibx_1", client.Message{ID: id})
		assert.Equal(t, client.ClassRequest, problem(t, err).Class)
		assert.Empty(t, p.requests())
	}
	for name, body := range hostile {
		c, _ := answering(t, 200, body)
		_, err := c.Body(t.Context(), "ibx_1", client.Message{ID: "msg_1"})
		require.ErrorIs(t, err, client.ErrBadAnswer, name)
	}
}

func TestBodyOverTheSizeCap(t *testing.T) {
	t.Parallel()
	c, _ := inMemory(t, always(200, `{"body_available":true,"text":"`+strings.Repeat("x", client.DefaultMaxBody)+`"}`))
	_, err := c.Body(t.Context(), "ibx_1", client.Message{ID: "msg_1"})
	require.ErrorIs(t, err, client.ErrBadAnswer)
	assert.Contains(t, problem(t, err).Error(), "over the size limit")
}
