package resend_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/resend"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

const receivedPush = `{"type":"email.received","created_at":"2026-02-22T23:41:12.126Z","data":{
  "email_id":"56761188-7520-42d8-8898-ff6fc54ce618","created_at":"2026-02-22T23:41:11.894719+00:00",
  "from":"Acme <onboarding@resend.dev>","to":["Support <support@Example.com>"],"bcc":[],"cc":[],"message_id":"<example+123>",
  "subject":"Sending this example","attachments":[]}}`

var delivery = verify.Delivery{ID: "msg_1"}

func TestProfile(t *testing.T) {
	t.Parallel()
	ev, err := resend.Profile(delivery, []byte(receivedPush))
	require.NoError(t, err)
	assert.Equal(t, receivedPush, string(ev.Data.Bytes()))
	m, ok := resend.Read(ev)
	require.True(t, ok)
	assert.Equal(t, "onboarding@resend.dev", m.From.Text())
	assert.Equal(t, "support@Example.com", m.To[0].Text())
	assert.Equal(t, "<example+123>", m.MessageID)
	assert.False(t, m.Outbound)
	ev.Data = client.Raw{}
	assert.Equal(t, events.Event{
		ID: "msg_1", Kind: events.KindReceived, Type: "email.received", Inbox: "support@example.com",
		Message: "56761188-7520-42d8-8898-ff6fc54ce618", OccurredAt: time.Date(2026, 2, 22, 23, 41, 12, 126e6, time.UTC),
	}, ev)
	_, ok = resend.Read(ev)
	assert.False(t, ok)
}

func TestProfileKinds(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]events.Event{
		"email.sent":             {Kind: events.KindDelivery, Delivery: client.DeliveryAccepted},
		"email.delivered":        {Kind: events.KindDelivery, Delivery: client.DeliveryDelivered},
		"email.delivery_delayed": {Kind: events.KindDelivery, Delivery: client.DeliveryDeferred},
		"email.failed":           {Kind: events.KindDelivery, Delivery: client.DeliveryFailed},
		"email.suppressed":       {Kind: events.KindDelivery, Delivery: client.DeliveryRejected},
		"email.bounced":          {Kind: events.KindBounce, Delivery: client.DeliveryBounced},
		"email.complained":       {Kind: events.KindComplaint, Delivery: client.DeliveryComplained},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			ev, err := resend.Profile(delivery, []byte(`{"type":"`+typ+`","data":{"email_id":"e","from":"Desk <desk@example.com>","to":["a@example.com"]}}`))
			require.NoError(t, err)
			want.ID, want.Type, want.Message, want.Inbox = "msg_1", typ, "e", "desk@example.com"
			ev.Data = client.Raw{}
			assert.Equal(t, want, ev)
		})
	}
	for _, typ := range []string{"email.opened", "contact.created", "email.teleported"} {
		ev, err := resend.Profile(delivery, []byte(`{"type":"`+typ+`"}`))
		require.NoError(t, err)
		assert.Equal(t, events.KindUnknown, ev.Kind)
	}
}

func TestReceiving(t *testing.T) {
	t.Parallel()
	profile, err := resend.Receiving("Agent@example.com", "@in.example.com")
	require.NoError(t, err)
	for recipients, want := range map[string]string{
		`"to":["other@example.org","Agent <agent@Example.com>"]`:        "agent@example.com",
		`"to":["other@example.org"],"cc":["anything@in.example.com"]`:   "anything@in.example.com",
		`"to":["other@example.org"],"bcc":"agent@example.com"`:          "agent@example.com",
		`"to":["x@in.example.com","agent@example.com"]`:                 "x@in.example.com",
		`"to":["other@example.org"]`:                                    "",
		`"to":["agent@example.com.attacker.example","not an address"]`:  "",
		`"to":["x@sub.in.example.com","xin.example.com@other.example"]`: "",
		`"to":7`: "",
		`"to":["\"agent@example.com\"@other.example"]`: "",
	} {
		ev, err := profile(delivery, []byte(`{"type":"email.received","data":{"email_id":"e",`+recipients+`}}`))
		require.NoError(t, err)
		assert.Equal(t, want, ev.Inbox, recipients)
	}
	_, err = resend.Receiving()
	require.Error(t, err)
	_, err = resend.Receiving("a@example.com", "xyzzy")
	require.ErrorIs(t, err, client.ErrAddress)
	assert.NotContains(t, err.Error(), "xyzzy")
	_, err = resend.Receiving("@")
	require.ErrorIs(t, err, client.ErrAddress)
}

func TestProfileRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `xyzzy`, `null`, `[]`, `{}`, `{"type":7}`, `{"type":"email.received"}`, `{"type":"email.received","data":"xyzzy"}`,
		`{"type":"email.bounced","data":{"email_id":7}}`, receivedPush + `{}`,
	} {
		ev, err := resend.Profile(delivery, []byte(body))
		require.ErrorIs(t, err, events.ErrNotEvent, body)
		assert.NotContains(t, err.Error(), "xyzzy")
		assert.Empty(t, ev)
	}
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(receivedPush))
	f.Add([]byte(`{"type":"email.bounced","data":{"email_id":"e","from":["a@b","c@d"],"to":{"a":1}}}`))
	f.Add([]byte(`{"type":"email.received","data":{"email_id":"\u0000","to":["\"a@b\"@c","@","<>"]}}`))
	profile, err := resend.Receiving("a@example.com", "@b")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range []events.Profile{resend.Profile, profile} {
			ev, err := p(delivery, body)
			if err != nil {
				require.True(t, errors.Is(err, events.ErrNotEvent))
				require.Empty(t, ev)
				continue
			}
			require.Equal(t, delivery.ID, ev.ID)
			require.NotEmpty(t, ev.Kind)
			require.True(t, ev.Inbox == "" || strings.Contains(ev.Inbox, "@"))
			if m, ok := resend.Read(ev); ok {
				require.Equal(t, ev.Message, m.ID)
			}
		}
	})
}
