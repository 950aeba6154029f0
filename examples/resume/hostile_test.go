package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/verify"
)

// delivery is a genuine one with a body that is not what it should be.
type delivery struct {
	what, id, body string
	status         int
}

func brackets(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// noise does not compress: an index takes less of it.
func noise(n int) string {
	rng, b := rand.New(rand.NewPCG(1, uint64(n))), make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}

// hostile makes the deliveries and then lets a workflow be done, by webhook and
// sweep as ever.
func (p *process) hostile(secret verify.Secret, list []delivery, workflow request) {
	p.t.Helper()
	for _, d := range list {
		require.Equal(p.t, d.status, p.pushSigned(secret, d.id, time.Now(), d.body), d.what)
	}
	require.Equal(p.t, 404, p.ask("GET", "/workflows/%00", nil, nil))
	require.Equal(p.t, 404, p.ask("POST", "/unmatched/%00%ff/bind", map[string]string{"workflow_id": "w\x00"}, nil))
	require.Equal(p.t, 201, p.ask("POST", "/workflows", workflow, nil))
	p.until("done", func() bool { return p.workflow(workflow.ID).Status == "done" })
	require.Equal(p.t, 200, p.status("/readyz"))
	require.NotContains(p.t, p.log.String(), "event parked")
	require.Less(p.t, len(p.log.String()), 20_000, "what a stranger sends fills no log")
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	srv := newEFA(t)
	answerQuestions(srv)
	p := newProcess(t, srv, testdb.Database(t)).startReady()
	srv.Webhook(p.url + p.door)
	event := func(id, message, thread, inbox string) string {
		b, err := json.Marshal(map[string]any{
			"id": id, "type": "message.received", "data": map[string]any{"message_id": message, "thread_id": thread, "inbox_id": inbox},
		})
		require.NoError(t, err)
		return string(b)
	}
	in, long := srv.Inbox(), strings.Repeat("e", 256)
	const data = `"type":"message.received","data":{}`
	whole := `{"id":"whole","type":"webhook.test","x":"`
	p.hostile(verify.RawSecret(srv.Secret()), []delivery{
		{"an ID of 256 bytes", long, event(long, "m1", "t", in), 204},
		{"an ID of 257 bytes in the body", "id1", event(long+"e", "m2", "t", in), 500},
		{"another ID in the body", "id2", event("id3", "m3", "t", in), 500},
		{"a NUL in the body's ID", "id4", event("id4\x00", "m4", "t", in), 500},
		{"two IDs, the last the delivery's", "id5", `{"id":"x","id":"id5",` + data + `}`, 204},
		{"two IDs, the first the delivery's", "id6", `{"id":"id6","id":"x",` + data + `}`, 500},
		{"a number as ID", "7", `{"id":7,` + data + `}`, 204},
		{"NUL in what it names", "id7", event("id7", "m\x00", "t\x00", in), 204},
		{"not UTF-8", "id8", strings.ReplaceAll(event("id8", "m#", "t#", in), "#", "\xff"), 204},
		{"half a surrogate", "id9", strings.ReplaceAll(event("id9", "m#", "t#", in), "#", `\ud800`), 204},
		{"long names", "id10", event("id10", noise(5000), noise(6000), noise(7000)), 204},
		{"nested 500,000 deep", "id11", `{"id":"id11",` + data + `,"x":` + brackets(500_000) + `}`, 500},
		{"nested 9,000 deep", "id12", `{"id":"id12",` + data + `,"x":` + brackets(9_000) + `}`, 204},
		{"1 MiB of brackets", "id13", strings.Repeat("[", verify.DefaultMaxBody), 500},
		{"data is an array", "id14", `{"id":"id14","type":"message.received","data":[]}`, 204},
		{"nothing at all", "id15", "", 500},
		{"1 MiB", "whole", whole + strings.Repeat("x", verify.DefaultMaxBody-len(whole)-2) + `"}`, 204},
		{"a byte more", "whole", whole + strings.Repeat("x", verify.DefaultMaxBody-len(whole)-1) + `"}`, 413},
	}, ask("w1", "ann@example.com", 1, srv))
	srv.Check(t)
}

func TestGoshenHostileBodies(t *testing.T) {
	t.Parallel()
	srv := newGoshen(t)
	answerOnGoshen(srv)
	p := newGoshenProcess(t, srv, testdb.Database(t)).startReady()
	srv.Webhook(p.url + p.door)
	event := func(kind, message, thread, inbox string) string {
		b, err := json.Marshal(map[string]any{
			"type": kind, "inboxId": inbox, "message": map[string]any{"messageId": message, "threadId": thread},
			"delivery": map[string]any{"version": 1, "recipients": []any{map[string]any{"status": "bounced"}}},
		})
		require.NoError(t, err)
		return string(b)
	}
	in, version := srv.Inbox(), `{"type":"email.delivery_updated","inboxId":"a","message":{"messageId":"m"},"delivery":{"version":%s}}`
	list := []delivery{
		{"a message ID of 998 characters", "", event("email.received", strings.Repeat("日", 998), "t", in), 204},
		{"NUL in what it names", "", event("email.received", "<\x00@b>", "t\x00", in), 204},
		{"not UTF-8", "", strings.ReplaceAll(event("email.received", "<#@b>", "t#", in), "#", "\xff\xfe"), 204},
		{"two of everything", "", `{"type":"x","type":"email.received","inboxId":"x","inboxId":"` + in + `","message":[],"message":{"messageId":"<2>"}}`, 204},
		{"a version over 64 bits", "", fmt.Sprintf(version, "9223372036854775808"), 500},
		{"the highest version", "", fmt.Sprintf(version, "9223372036854775807"), 204},
		{"a version below 0", "", fmt.Sprintf(version, "-1"), 500},
		{"nested 500,000 deep", "", `{"type":"email.received","x":` + brackets(500_000) + `}`, 500},
	}
	for i, kind := range []string{"email.received", "email.bounced", "email.delivery_updated", noise(5000)} {
		list = append(list, delivery{"long names " + kind[:8], "", event(kind, noise(3000+i), noise(4000+i), in), 204})
		list = append(list, delivery{"a long inbox " + kind[:8], "", event(kind, noise(5000+i), "t", noise(6000+i)), 204})
	}
	for i := range list {
		list[i].id = fmt.Sprintf("d%d", i)
	}
	p.hostile(verify.Base64Secret(srv.Secret()), list, askGoshen("w1", "ann@example.com", srv))
	srv.Check(t)
}
