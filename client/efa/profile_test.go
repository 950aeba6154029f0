package efa_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

const documentedPush = `{
  "id": "evt_1",
  "type": "message.received",
  "api_version": "2026-09-19",
  "data": {
    "message_id": "msg_1",
    "thread_id": "thd_1",
    "inbox_id": "ibx_1",
    "environment": "live",
    "simulated": false
  }
}`

func TestProfile(t *testing.T) {
	t.Parallel()
	ev, err := efa.Profile(verify.Delivery{ID: "evt_1"}, []byte(documentedPush))
	require.NoError(t, err)
	assert.Equal(t, documentedPush, string(ev.Data.Bytes()))
	ev.Data = client.Raw{}
	assert.Equal(t, events.Event{
		ID: "evt_1", Kind: events.KindReceived, Type: "message.received",
		Inbox: "ibx_1", Thread: "thd_1", Message: "msg_1",
	}, ev)
}

func TestProfileKinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typ, data string
		want      events.Event
	}{
		"queued":            {"message.queued", ``, events.Event{Kind: events.KindQueued}},
		"accepted":          {"message.accepted", ``, events.Event{Kind: events.KindDelivery, Delivery: client.DeliveryAccepted}},
		"delivery unknown":  {"message.delivery_updated", ``, events.Event{Kind: events.KindDelivery}},
		"delivery bounced":  {"message.delivery_updated", `"status":"bounced"`, events.Event{Kind: events.KindDelivery, Delivery: client.DeliveryBounced}},
		"delivery capital":  {"message.delivery_updated", `"status":"Complained"`, events.Event{Kind: events.KindDelivery, Delivery: client.DeliveryComplained}},
		"delivery odd word": {"message.delivery_updated", `"status":"teleported"`, events.Event{Kind: events.KindDelivery}},
		"delivery odd type": {"message.delivery_updated", `"status":{"a":1}`, events.Event{Kind: events.KindDelivery}},
		"requested":         {"approval.requested", `"approval_id":"apr_1"`, events.Event{Kind: events.KindApproval, Decision: events.DecisionRequested, Approval: "apr_1"}},
		"rejected":          {"approval.rejected", `"approval_id":"apr_1"`, events.Event{Kind: events.KindApproval, Decision: events.DecisionRejected, Approval: "apr_1"}},
		"approved":          {"approval.approved", `"approval_id":"apr_1"`, events.Event{Kind: events.KindApproval, Decision: events.DecisionApproved, Approval: "apr_1"}},
		"invalidated":       {"approval.invalidated", `"approval_id":"apr_1"`, events.Event{Kind: events.KindApproval, Approval: "apr_1"}},
		"test":              {"webhook.test", ``, events.Event{Kind: events.KindTest}},
		"new":               {"message.teleported", `"message_id":"msg_1"`, events.Event{Kind: events.KindUnknown, Message: "msg_1"}},
		"upstream's name":   {"email.received", ``, events.Event{Kind: events.KindUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"id":"e","type":"` + tc.typ + `","api_version":"2099-01-01","new":true,"data":{` + tc.data + `}}`
			ev, err := efa.Profile(verify.Delivery{ID: "e"}, []byte(body))
			require.NoError(t, err)
			tc.want.ID, tc.want.Type, ev.Data = "e", tc.typ, client.Raw{}
			assert.Equal(t, tc.want, ev)
		})
	}
}

func TestProfileRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":         ``,
		"text":            `xyzzy`,
		"null":            `null`,
		"array":           `[{"id":"evt_1","type":"x"}]`,
		"no ID":           `{"type":"message.received","data":{}}`,
		"no type":         `{"id":"evt_1","data":{}}`,
		"empty type":      `{"id":"evt_1","type":""}`,
		"type of no kind": `{"id":"evt_1","type":{}}`,
		"other ID":        `{"id":"evt_2","type":"message.received"}`,
		"other letters":   `{"ID":"evt_1","TYPE":"message.received"}`,
		"trailing":        `{"id":"evt_1","type":"message.received"} xyzzy`,
		"two":             `{"id":"evt_1","type":"message.received"}{}`,
		"cut":             `{"id":"evt_1","type":"message.received"`,
		"deep":            strings.Repeat(`[`, 20000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := efa.Profile(verify.Delivery{ID: "evt_1"}, []byte(body))
			require.ErrorIs(t, err, events.ErrNotEvent)
			assert.NotContains(t, err.Error(), "xyzzy")
			assert.NotContains(t, err.Error(), "evt_2")
			assert.Empty(t, ev)
		})
	}
}

func FuzzProfile(f *testing.F) {
	f.Add("evt_1", []byte(documentedPush))
	f.Add("evt_1", []byte(`{"id":"evt_1","type":"message.delivery_updated","data":{"status":"bounced"}}`))
	f.Add("7", []byte(`{"id":7,"type":"approval.rejected","data":{"approval_id":"\u0000"}}`))
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		ev, err := efa.Profile(verify.Delivery{ID: id}, body)
		if err != nil {
			require.True(t, errors.Is(err, events.ErrNotEvent))
			require.Empty(t, ev)
			return
		}
		require.Equal(t, id, ev.ID)
		require.Equal(t, string(body), string(ev.Data.Bytes()))
		checkEvent(t, ev)
	})
}

// checkEvent asserts what a store relies on: an ID, a kind, and no key that a
// database refuses.
func checkEvent(t *testing.T, ev events.Event) {
	t.Helper()
	require.NotEmpty(t, ev.ID)
	require.NotEmpty(t, ev.Kind)
	for _, key := range []string{ev.ID, ev.Type, ev.Inbox, ev.Thread, ev.Message, ev.Approval} {
		require.LessOrEqual(t, len(key), 256)
		require.NotContains(t, key, "\x00")
		require.NotContains(t, key, "\n")
	}
}

func FuzzPage(f *testing.F) {
	f.Add(documentedPage)
	f.Add(`{"data":[],"next_cursor":null,"has_more":false}`)
	f.Add(`{"data":[{"id":"evt_1","sequence":"12"}],"has_more":true}`)
	for _, body := range hostile {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, _ := inMemory(t, always(200, body))
		page, err := c.Source().Page(t.Context(), 1)
		if err != nil {
			require.ErrorIs(t, err, client.ErrBadAnswer)
			require.Empty(t, page)
			return
		}
		for _, ev := range page.Events {
			require.Positive(t, ev.Sequence)
			checkEvent(t, ev)
		}
	})
}
