package resume_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// What the events of one commit are about is looked up, then their workflows
// are locked, then it is looked up again. A send that gets its outcome in
// between belongs to a workflow that is not locked, and its news must not be
// lost for that.
func TestASendBecomesKnownBetweenTheTwoLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold bool
		news func(r *rig, sent efatest.Send) error
		want resume.InputKind
	}{
		"refused by a person": {true, func(r *rig, sent efatest.Send) error { return r.srv.Reject(sent.ApprovalID) }, resume.InputRejected},
		"bounced": {false, func(r *rig, sent efatest.Send) error {
			r.srv.DeliveryUpdate(sent.MessageID, string(client.DeliveryBounced))
			return nil
		}, resume.InputBounce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "postgres", listens, resume.Config{}) // SQLite has one writer
			known := r.waits("w1")
			answered, stored := make(chan struct{}), make(chan struct{})
			store := sync.OnceFunc(func() { close(stored) })
			t.Cleanup(store)
			if c.hold {
				r.srv.HoldSends(efatest.All)
			}
			r.srv.OnRequest(func(op efatest.Op, at efatest.Point, _ *http.Request) {
				if op == efatest.OpSend && at == efatest.AfterEffect {
					close(answered)
					<-stored
				}
			})
			r.start(resume.Start{ID: "w2", Counterparty: "other@example.com", First: question("other@example.com")})
			r.feed()
			sender := background(r.eng, resume.JobSend)
			<-answered
			sent := r.srv.Sends()[1]
			reply := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: known.MessageID, Text: "100 EUR"})
			require.NoError(t, c.news(r, sent))
			page, err := r.mail.Source().Page(t.Context(), r.fed)
			require.NoError(t, err)

			finish := sync.OnceValue(func() error {
				store()
				return <-sender
			})
			ctx := sqldb.WithHook(t.Context(), func(point string) error {
				if strings.Contains(point, "workflows") && strings.Contains(point, "for update") {
					return finish()
				}
				return nil
			})
			_, err = r.inbox.Take(ctx, events.Batch{Events: page.Events})
			require.NoError(t, err)
			r.fed = page.Events[len(page.Events)-1].Sequence
			r.rest()

			told := map[string]resume.Run{}
			for _, run := range r.runs() {
				told[run.ID] = run
			}
			require.Equal(t, []string{reply.MessageID}, messages(told["w1"]))
			require.Len(t, told["w2"].Inputs, 1)
			require.Equal(t, c.want, told["w2"].Inputs[0].Kind)
			require.Equal(t, resume.StatusWaiting, r.status("w2"))
		})
	}
}
