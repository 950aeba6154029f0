package goshen_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

const (
	receivedPush = `{"type":"email.received","inboxId":"agent@mail.goshen.invalid","occurredAt":"2026-09-20T18:05:12.000Z",
  "message":{"messageId":"<1@example.com>","threadId":"5d2f1a52-0000-4000-8000-000000000001","inboxId":"agent@mail.goshen.invalid",
  "from":"supplier@example.com","to":["agent@mail.goshen.invalid"],"subject":"Re: Quote","preview":"12","timestamp":"2026-09-20T18:05:12.000Z",
  "labels":["received","unread"],"attachments":[],"text":"12","bodyTruncated":false,"bodiesOmitted":false,"triage":{"status":"pending"}}}`
	deliveryPush = `{"type":"email.delivery_updated","inboxId":"agent@mail.goshen.invalid","occurredAt":"2026-09-20T18:05:14.000Z",
  "message":{"messageId":"<2@mail.goshen.invalid>","threadId":"t","inboxId":"agent@mail.goshen.invalid"},
  "delivery":{"version":2,"sentAt":"2026-09-20T18:05:12.000Z","updatedAt":"2026-09-20T18:05:14.000Z",
  "recipients":[{"recipient":"a@example.com","status":"delivered","updatedAt":"2026-09-20T18:05:14.000Z","delivered":true}]}}`
	bouncedPush = `{"type":"email.bounced","inboxId":"agent@mail.goshen.invalid","occurredAt":"2026-09-20T18:05:12.000Z",
  "message":{"messageId":"<2@mail.goshen.invalid>","threadId":"t","inboxId":"agent@mail.goshen.invalid","from":"agent@mail.goshen.invalid",
  "to":["a@example.com"],"subject":"Quote","preview":"","timestamp":"2026-09-20T18:05:12.000Z","labels":["sent","bounced"],"attachments":[]},
  "recipients":["a@example.com"]}`
)

func TestProfile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 20, 18, 5, 12, 0, time.UTC)
	for name, tc := range map[string]struct {
		body string
		want events.Event
	}{
		"received": {receivedPush, events.Event{
			ID: "received:agent@mail.goshen.invalid:<1@example.com>", Kind: events.KindReceived, Type: "email.received",
			Thread: "5d2f1a52-0000-4000-8000-000000000001", Message: "<1@example.com>", OccurredAt: at,
		}},
		"delivery": {deliveryPush, events.Event{
			ID: "delivery:agent@mail.goshen.invalid:<2@mail.goshen.invalid>:2", Kind: events.KindDelivery, Type: "email.delivery_updated",
			Thread: "t", Message: "<2@mail.goshen.invalid>", OccurredAt: at.Add(2 * time.Second), Delivery: client.DeliveryDelivered, Version: 2,
		}},
		"bounced": {bouncedPush, events.Event{
			ID: "bounce:agent@mail.goshen.invalid:<2@mail.goshen.invalid>", Kind: events.KindBounce, Type: "email.bounced",
			Thread: "t", Message: "<2@mail.goshen.invalid>", OccurredAt: at, Delivery: client.DeliveryBounced, Version: 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := goshen.Profile(verify.Delivery{ID: "5d2f1a52"}, []byte(tc.body))
			require.NoError(t, err)
			assert.Equal(t, tc.body, string(ev.Data.Bytes()))
			tc.want.Inbox, ev.Data = agent, client.Raw{}
			assert.Equal(t, tc.want, ev)
		})
	}
}

func TestProfileUnknownTypeHasTheHeadersID(t *testing.T) {
	t.Parallel()
	ev, err := goshen.Profile(verify.Delivery{ID: "delivery:1:2"}, []byte(`{"type":"email.teleported","inboxId":"a@b","message":{"messageId":"<m>"}}`))
	require.NoError(t, err)
	assert.Equal(t, events.KindUnknown, ev.Kind)
	assert.Equal(t, "other:delivery%3A1%3A2", ev.ID)
	assert.Equal(t, "<m>", ev.Message)
}

func TestDeliveryState(t *testing.T) {
	t.Parallel()
	for states, want := range map[string]client.Delivery{
		"":                             client.DeliveryUnknown,
		"queued":                       client.DeliveryQueued,
		"delivered delivered":          client.DeliveryDelivered,
		"delivered accepted":           client.DeliveryAccepted,
		"deferred delivered":           client.DeliveryDeferred,
		"accepted deferred queued":     client.DeliveryQueued,
		"delivered bounced":            client.DeliveryBounced,
		"complained rejected failed":   client.DeliveryFailed,
		"complained delivered":         client.DeliveryComplained,
		"rejected complained accepted": client.DeliveryRejected,
		"delivered teleported":         client.DeliveryUnknown,
		"teleported bounced":           client.DeliveryBounced,
	} {
		t.Run(states, func(t *testing.T) {
			t.Parallel()
			rows := []string{}
			for state := range strings.FieldsSeq(states) {
				rows = append(rows, fmt.Sprintf(`{"recipient":"a@example.com","status":%q}`, state))
			}
			ev, err := goshen.Profile(verify.Delivery{ID: "x"}, fmt.Appendf(nil,
				`{"type":"email.delivery_updated","inboxId":"i","message":{"messageId":"m"},"delivery":{"version":7,"recipients":[%s]}}`, strings.Join(rows, ",")))
			require.NoError(t, err)
			assert.Equal(t, want, ev.Delivery)
		})
	}
}

func TestProfileRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":       ``,
		"text":          `xyzzy`,
		"null":          `null`,
		"array":         `[]`,
		"no type":       `{"inboxId":"i","message":{"messageId":"xyzzy"}}`,
		"type no text":  `{"type":7}`,
		"no inbox":      `{"type":"email.received","message":{"messageId":"xyzzy"}}`,
		"no message":    `{"type":"email.received","inboxId":"i"}`,
		"message text":  `{"type":"email.bounced","inboxId":"i","message":"xyzzy"}`,
		"other letters": `{"type":"email.received","INBOXID":"i","message":{"MessageID":"xyzzy"}}`,
		"no version":    `{"type":"email.delivery_updated","inboxId":"i","message":{"messageId":"xyzzy"},"delivery":{}}`,
		"odd version":   `{"type":"email.delivery_updated","inboxId":"i","message":{"messageId":"xyzzy"},"delivery":{"version":1.5}}`,
		"below zero":    `{"type":"email.delivery_updated","inboxId":"i","message":{"messageId":"xyzzy"},"delivery":{"version":-1}}`,
		"trailing":      receivedPush + `{}`,
		"cut":           receivedPush[:len(receivedPush)-1],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := goshen.Profile(verify.Delivery{ID: "x"}, []byte(body))
			require.ErrorIs(t, err, events.ErrNotEvent)
			assert.NotContains(t, err.Error(), "xyzzy")
			assert.Empty(t, ev)
		})
	}
}

// Two different events never share an ID, whatever a stranger writes into a
// Message-ID.
func TestIdentityIsInjective(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(
		rapid.StringMatching(`[a:%<>@ .\x00é]{1,6}`),
		rapid.StringMatching(`[a:]{240,270}`),
		rapid.SampledFrom([]string{"a", "a:b", "b:1", "1", "%", "%3A", "%:"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (string, events.Event) {
			typ := rapid.SampledFrom([]string{"email.received", "email.bounced", "email.delivery_updated"}).Draw(t, label+" type")
			inbox, message := part.Draw(t, label+" inbox"), part.Draw(t, label+" message")
			version := 0
			if typ == "email.delivery_updated" {
				version = rapid.IntRange(1, 12).Draw(t, label+" version")
			}
			body, err := json.Marshal(map[string]any{
				"type": typ, "inboxId": inbox, "message": map[string]any{"messageId": message}, "delivery": map[string]any{"version": version},
			})
			require.NoError(t, err)
			ev, err := goshen.Profile(verify.Delivery{ID: "x"}, body)
			require.NoError(t, err)
			return fmt.Sprintf("%q %q %q %d", typ, inbox, message, version), ev
		}
		a, first := draw("first")
		b, second := draw("second")
		require.Equal(t, a == b, first.ID == second.ID, "%s %s", first.ID, second.ID)
	})
}

func FuzzProfile(f *testing.F) {
	for _, body := range []string{receivedPush, deliveryPush, bouncedPush, `{"type":"x"}`, `{"type":"email.received","inboxId":"\u0000","message":{"messageId":"\n"}}`} {
		f.Add("5d2f1a52-0000-4000-8000-000000000001", []byte(body))
	}
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		ev, err := goshen.Profile(verify.Delivery{ID: id}, body)
		if err != nil {
			require.True(t, errors.Is(err, events.ErrNotEvent))
			require.Empty(t, ev)
			return
		}
		require.Equal(t, string(body), string(ev.Data.Bytes()))
		checkID(t, ev.ID)
		require.NotEmpty(t, ev.Kind)
		require.GreaterOrEqual(t, ev.Version, int64(0))
	})
}

// checkID asserts what a store relies on.
func checkID(t *testing.T, id string) {
	t.Helper()
	require.NotEmpty(t, id)
	require.LessOrEqual(t, len(id), 256)
	for _, c := range []byte(id) {
		require.True(t, c > ' ' && c <= '~', "%q", id)
	}
}

func FuzzPage(f *testing.F) {
	for _, body := range []string{
		`{"messages":[]}`,
		`{"messages":[{"messageId":"<1@b>","inboxId":"a@b","threadId":"t","from":"c@d","labels":["received","unread"],"timestamp":"2026-09-20T18:05:12Z"}]}`,
		`{"messages":[{"messageId":"<1@b>","inboxId":"a@b","labels":["received","unread","quarantined"]}],"nextPageToken":"x"}`,
		`{"messages":[{"messageId":"<1@b>","inboxId":"a@b","labels":["sent"]}]}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		page, err := answering(t, 200, body).Source().Page(t.Context(), 0)
		if err != nil {
			require.ErrorIs(t, err, client.ErrBadAnswer)
			require.Empty(t, page)
			return
		}
		for _, ev := range page.Events {
			require.Equal(t, events.KindReceived, ev.Kind)
			require.NotEmpty(t, ev.Message)
			checkID(t, ev.ID)
		}
	})
}
