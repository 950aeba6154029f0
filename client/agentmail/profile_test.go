package agentmail_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/agentmail"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

const (
	receivedPush = `{"type":"event","event_type":"message.received","event_id":"evt_1","message":{
  "inbox_id":"support@agentmail.to","thread_id":"thd_1","message_id":"<1@example.com>","labels":["received"],
  "timestamp":"2026-09-20T10:00:00Z","from":[{"name":"Jane Doe","email":"jane@example.com"}],
  "to":[{"name":"Support Agent","email":"support@agentmail.to"}],"subject":"Question","preview":"A short","text":"A short question"},
  "thread":{"inbox_id":"support@agentmail.to","thread_id":"thd_1"}}`
	bouncedPush = `{"type":"event","event_type":"message.bounced","event_id":"evt_2","bounce":{"inbox_id":"support@agentmail.to",
  "thread_id":"thd_1","message_id":"<2@agentmail.to>","timestamp":"2026-09-20T10:00:00Z","type":"Permanent","sub_type":"General",
  "recipients":[{"address":"jane@example.com","status":"bounced"}]}}`
)

func TestProfile(t *testing.T) {
	t.Parallel()
	ev, err := agentmail.Profile(verify.Delivery{ID: "msg_1"}, []byte(receivedPush))
	require.NoError(t, err)
	assert.Equal(t, receivedPush, string(ev.Data.Bytes()))
	ev.Data = client.Raw{}
	assert.Equal(t, events.Event{
		ID: "evt_1", Kind: events.KindReceived, Type: "message.received", Inbox: "support@agentmail.to",
		Thread: "thd_1", Message: "<1@example.com>", OccurredAt: time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC),
	}, ev)

	ev, err = agentmail.Profile(verify.Delivery{ID: "msg_2"}, []byte(bouncedPush))
	require.NoError(t, err)
	assert.Equal(t, events.KindBounce, ev.Kind)
	assert.Equal(t, client.DeliveryBounced, ev.Delivery)
	assert.Equal(t, "<2@agentmail.to>", ev.Message)
}

func TestProfileKinds(t *testing.T) {
	t.Parallel()
	for typ, tc := range map[string]struct {
		about    string
		kind     events.Kind
		delivery client.Delivery
	}{
		"message.sent":                     {"send", events.KindDelivery, client.DeliveryAccepted},
		"message.delivered":                {"delivery", events.KindDelivery, client.DeliveryDelivered},
		"message.complained":               {"complaint", events.KindComplaint, client.DeliveryComplained},
		"message.rejected":                 {"reject", events.KindDelivery, client.DeliveryRejected},
		"message.received.spam":            {"message", events.KindUnknown, ""},
		"message.received.blocked":         {"message", events.KindUnknown, ""},
		"message.received.unauthenticated": {"message", events.KindUnknown, ""},
		"message.teleported":               {"message", events.KindUnknown, ""},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			ev, err := agentmail.Profile(verify.Delivery{ID: "msg_1"}, []byte(`{"event_type":"`+typ+`","event_id":"e","`+tc.about+`":{"inbox_id":"i","thread_id":"t","message_id":"m"}}`))
			require.NoError(t, err)
			assert.Equal(t, []string{"i", "t", "m"}, []string{ev.Inbox, ev.Thread, ev.Message})
			assert.Equal(t, tc.kind, ev.Kind)
			assert.Equal(t, tc.delivery, ev.Delivery)
		})
	}
	ev, err := agentmail.Profile(verify.Delivery{ID: "msg_1"}, []byte(`{"event_type":"domain.verified","event_id":"e","domain":{}}`))
	require.NoError(t, err)
	assert.Equal(t, events.KindUnknown, ev.Kind)
}

func TestIdentityWithoutAnEventID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`null`, `""`, `7`, `"two words"`} {
		ev, err := agentmail.Profile(verify.Delivery{ID: "msg_1"}, []byte(`{"event_type":"domain.verified","event_id":`+id+`}`))
		require.NoError(t, err)
		assert.Equal(t, "svix:msg_1", ev.ID)
	}
}

func TestProfileRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `xyzzy`, `null`, `[]`, `{"event_id":"xyzzy"}`, `{"event_type":"message.received","event_id":"xyzzy"}`,
		`{"event_type":"message.received","message":{"inbox_id":"xyzzy"}}`, `{"event_type":"message.bounced","bounce":"xyzzy"}`, receivedPush + `{}`,
	} {
		ev, err := agentmail.Profile(verify.Delivery{ID: "x"}, []byte(body))
		require.ErrorIs(t, err, events.ErrNotEvent, body)
		assert.NotContains(t, err.Error(), "xyzzy")
		assert.Empty(t, ev)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fields    string
		from      string
		text      string
		available bool
	}{
		"text":             {`"from":"jane@example.com","text":"hi"`, "jane@example.com", "hi", true},
		"display name":     {`"from":"Jane <jane@example.com>","text":"hi"`, "jane@example.com", "hi", true},
		"array":            {`"from":[{"name":"Jane","email":"jane@example.com"}],"text":""`, "jane@example.com", "", true},
		"array of texts":   {`"from_":["Jane <jane@example.com>"],"html":"<p>"`, "jane@example.com", "", true},
		"both names":       {`"from":"jane@example.com","from_":["jane@example.com"],"text":"hi"`, "jane@example.com", "hi", true},
		"over 1 MB":        {`"from":"jane@example.com"`, "jane@example.com", "", false},
		"two senders":      {`"from":["jane@example.com","joe@example.com"],"text":"hi"`, "", "hi", true},
		"no sender":        {`"from":null,"text":"hi"`, "", "hi", true},
		"sender of no use": {`"from":{"a":1},"text":{"a":1}`, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := agentmail.Profile(verify.Delivery{ID: "x"}, []byte(
				`{"event_type":"message.received","event_id":"e","message":{"inbox_id":"i","message_id":"m","subject":"s","to":"a@b, c@d",`+tc.fields+`}}`))
			require.NoError(t, err)
			m, body, ok := agentmail.Read(ev)
			require.True(t, ok)
			assert.Equal(t, tc.from, m.From.Text())
			assert.Equal(t, "s", m.Subject.Text())
			assert.Equal(t, "m", m.ID)
			assert.Equal(t, tc.text, body.Text.Text())
			assert.Equal(t, tc.available, body.Available)
		})
	}
	ev, err := agentmail.Profile(verify.Delivery{ID: "x"}, []byte(bouncedPush))
	require.NoError(t, err)
	_, _, ok := agentmail.Read(ev)
	assert.False(t, ok)
	_, _, ok = agentmail.Read(events.Event{Kind: events.KindReceived})
	assert.False(t, ok)
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(receivedPush))
	f.Add([]byte(bouncedPush))
	f.Add([]byte(`{"event_type":"message.received","event_id":"\u0000","message":{"inbox_id":"i","message_id":"m","from_":[[]],"from":["a@b",{}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ev, err := agentmail.Profile(verify.Delivery{ID: "msg_1"}, body)
		if err != nil {
			require.True(t, errors.Is(err, events.ErrNotEvent))
			require.Empty(t, ev)
			return
		}
		require.NotEmpty(t, ev.ID)
		require.LessOrEqual(t, len(ev.ID), 256)
		require.NotEmpty(t, ev.Kind)
		if m, _, ok := agentmail.Read(ev); ok {
			require.Equal(t, ev.Message, m.ID)
		}
	})
}
