package efa_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/verify"
)

const secretText = "0123456789abcdef0123456789abcdef"

func TestWebhooks(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, `{"data":[
		{"id":"whk_1","url":"https://agent.example/hooks","status":"active","event_types":["message.received"],"revision":3,"secret_version":2},
		{"id":"whk_2","revision":"4","secret_version":"v7","event_types":"message.received"}]}`)
	list, err := c.Webhooks(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []asked{{method: "GET", path: "/v1/projects/prj_1/webhooks"}}, p.requests())
	assert.Equal(t, []efa.Webhook{
		{ID: "whk_1", URL: "https://agent.example/hooks", Status: "active", Types: []string{"message.received"}, Revision: 3, SecretVersion: "2"},
		{ID: "whk_2", Types: []string{}, Revision: 4, SecretVersion: "v7"},
	}, list)
}

func TestTestWebhookIsAKnownAnswer(t *testing.T) {
	t.Parallel()
	at := time.Now()
	body := `{"id":"evt_1","type":"webhook.test","api_version":"2026-09-19","data":{}}`
	header, err := verify.Sign(verify.RawSecret(secretText), "evt_1", at, []byte(body))
	require.NoError(t, err)
	for name, timestamp := range map[string]string{
		"number": strconv.FormatInt(at.Unix(), 10), "string": strconv.Quote(strconv.FormatInt(at.Unix(), 10)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := answering(t, 200, fmt.Sprintf(
				`{"event_id":"evt_1","delivery_id":"dlv_1","egress":"available","body":%q,"timestamp":%s,"signature":%q}`,
				body, timestamp, header.Get("webhook-signature")))
			vector, err := c.TestWebhook(t.Context(), "whk_1")
			require.NoError(t, err)
			assert.Equal(t, []asked{{method: "POST", path: "/v1/projects/prj_1/webhooks/whk_1/test"}}, p.requests())
			assert.Equal(t, "dlv_1", vector.DeliveryID)
			assert.Equal(t, "available", vector.Egress)

			v, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(secretText)}})
			require.NoError(t, err)
			d, err := v.Verify(vector.Header(), vector.Body)
			require.NoError(t, err)
			ev, err := efa.Profile(d, vector.Body)
			require.NoError(t, err)
			assert.Equal(t, "webhook.test", ev.Type)
		})
	}
}

func TestTestWebhookLimit(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 429, `{"error":{"code":"rate_limited"}}`)
	_, err := c.TestWebhook(t.Context(), "whk_1")
	assert.Equal(t, client.ClassQuota, problem(t, err).Class)
	assert.Len(t, p.requests(), 1)
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, `{"data":[{"id":"dlv_1","event_id":"evt_1","state":"exhausted","attempts":[
		{"attempt_number":1,"attempted_at":"2026-09-23T14:40:11Z","outcome":"rejected","http_status":404,"safe_response_excerpt":"no xyzzy here"},
		{"attempt_number":2,"outcome":"held_egress_unavailable","http_status":null}, "odd"]},
		{"event_id":"evt_2","state":"pending"}]}`)
	list, err := c.Deliveries(t.Context(), "whk_1")
	require.NoError(t, err)
	assert.Equal(t, []asked{{method: "GET", path: "/v1/projects/prj_1/webhooks/whk_1/deliveries"}}, p.requests())
	require.Len(t, list, 2)
	assert.Equal(t, "exhausted", list[0].State)
	require.Len(t, list[0].Attempts, 3)
	first := list[0].Attempts[0]
	assert.Equal(t, int64(404), first.Status)
	assert.Equal(t, "rejected", first.Outcome)
	assert.Equal(t, 2026, first.At.Year())
	assert.Equal(t, "no xyzzy here", first.Excerpt.Text())
	assert.NotContains(t, fmt.Sprintf("%+v", list), "xyzzy")
	assert.Zero(t, list[0].Attempts[1].Status)
	assert.Equal(t, "evt_2", list[1].EventID)
}

func TestControl(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, `{"secret":"`+secretText+`","secret_version":3,"revision":8,"canceled_deliveries":2,"note":"they will not replay"}`)
	done, err := c.Control(t.Context(), "whk_1", efa.RotateSecret, 7)
	require.NoError(t, err)
	assert.Equal(t, []asked{{
		method: "POST", path: "/v1/projects/prj_1/webhooks/whk_1/control",
		body: `{"action":"rotate_secret","expected_revision":7}`,
	}}, p.requests())
	assert.Equal(t, secretText, done.Secret.Reveal())
	assert.Equal(t, "3", done.SecretVersion)
	assert.Equal(t, int64(8), done.Revision)
	assert.Equal(t, int64(2), done.Canceled)

	holder := struct{ inner efa.Controlled }{done}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{done, &done, done.Secret, holder, &holder} {
			printed := fmt.Sprintf(verb, value)
			assert.NotContains(t, printed, secretText)
			assert.NotContains(t, printed, fmt.Sprintf("%x", secretText))
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "done", done, "secret", done.Secret)
	assert.NotContains(t, log.String(), secretText)
	encoded, err := json.Marshal(done)
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), secretText)
	assert.Empty(t, efa.Secret{}.Reveal())
}

func TestControlWithoutASecret(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, `{"canceled_deliveries":1}`)
	done, err := c.Control(t.Context(), "whk_1", efa.Disable, 7)
	require.NoError(t, err)
	assert.Equal(t, int64(1), done.Canceled)
	_, err = c.Control(t.Context(), "whk_1", efa.RotateSecret, 7)
	require.ErrorIs(t, err, client.ErrBadAnswer, "a rotation whose secret nobody knows must not pass for one")
	problem(t, err)

	c, _ = answering(t, 409, `{"error":{"code":"version_conflict"}}`)
	_, err = c.Control(t.Context(), "whk_1", efa.Enable, 7)
	require.ErrorIs(t, err, client.ErrRevision)
}

func TestSimulateInbound(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 202, `{"message_id":"msg_1","thread_id":"thd_1"}`)
	m, err := c.SimulateInbound(t.Context(), efa.Inbound{Inbox: "ibx_1", From: "ann@example.com", Subject: "Re: x", Text: "yes"})
	require.NoError(t, err)
	assert.Equal(t, []asked{{
		method: "POST", path: "/v1/projects/prj_1/test/inbound",
		body: `{"inbox_id":"ibx_1","from":"ann@example.com","subject":"Re: x","text":"yes"}`,
	}}, p.requests())
	assert.Equal(t, "msg_1", m.ID)
	assert.Equal(t, "thd_1", m.Thread)

	_, err = c.SimulateInbound(t.Context(), efa.Inbound{})
	assert.Equal(t, client.ClassRequest, problem(t, err).Class)
	assert.Len(t, p.requests(), 1)
}

func TestWebhookAnswersOfAnotherShape(t *testing.T) {
	t.Parallel()
	for name, body := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, body)
			_, err := c.TestWebhook(t.Context(), "whk_1")
			require.ErrorIs(t, err, client.ErrBadAnswer)
			problem(t, err)
			_, err = c.Control(t.Context(), "whk_1", efa.RotateSecret, 1)
			require.ErrorIs(t, err, client.ErrBadAnswer)
			problem(t, err)
			if name == "wrong has_more" { // these lists have no has_more
				return
			}
			_, err = c.Webhooks(t.Context())
			require.ErrorIs(t, err, client.ErrBadAnswer)
			_, err = c.Deliveries(t.Context(), "whk_1")
			require.ErrorIs(t, err, client.ErrBadAnswer)
			problem(t, err)
		})
	}
}
