package resumetest

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/sqldb"
)

// boundaryMail is the provider's client of the present run, with a boundary
// at each call. A send has three: before it, after its effect and before its
// answer (see cutAnswer), and after its answer.
type boundaryMail struct {
	rig    *rig
	reads  atomic.Int64
	failed atomic.Bool // once, in whatever way: the engine remembers it
}

func (m *boundaryMail) seen(err error) error {
	if err != nil {
		m.failed.Store(true)
	}
	return err
}

func (m *boundaryMail) world() *world { return m.rig.world.Load() }

func (m *boundaryMail) Stream() events.Stream { return m.rig.stream }

func (m *boundaryMail) Seal(inbox string, out client.Outgoing) (client.Sealed, error) {
	return m.world().mail.Seal(inbox, out)
}

func (m *boundaryMail) Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error) {
	if err := boundary(ctx, "provider: before the send"); err != nil {
		return client.Outcome{}, m.seen(err)
	}
	out, err := m.world().mail.Send(ctx, key, s)
	if at := boundary(ctx, "provider: after the send's answer"); at != nil {
		return client.Outcome{}, m.seen(at)
	}
	return out, m.seen(err)
}

func (m *boundaryMail) Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error] {
	if err := boundary(ctx, "provider: before listing a thread"); err != nil {
		return func(yield func(client.Message, error) bool) { yield(client.Message{}, m.seen(err)) }
	}
	m.reads.Add(1)
	return func(yield func(client.Message, error) bool) {
		for msg, err := range m.world().mail.Messages(ctx, inbox, thread) {
			if !yield(msg, m.seen(err)) {
				return
			}
		}
	}
}

func (m *boundaryMail) Body(ctx context.Context, inbox string, msg client.Message) (client.Body, error) {
	if err := boundary(ctx, "provider: before reading a body"); err != nil {
		return client.Body{}, m.seen(err)
	}
	body, err := m.world().mail.Body(ctx, inbox, msg)
	return body, m.seen(err)
}

// cutAnswer is the boundary between a send's effect and its answer. A process
// that ends there leaves a broken connection.
func cutAnswer(op efatest.Op, at efatest.Point, r *http.Request) {
	hook := sqldb.HookOf(r.Context())
	if hook == nil || op != efatest.OpSend || at != efatest.AfterEffect {
		return
	}
	if err := hook("provider: after the send's effect"); err != nil {
		panic(http.ErrAbortHandler)
	}
}
