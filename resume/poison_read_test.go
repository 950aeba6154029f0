package resume_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// breaks makes reads of an operation fail for good where path says.
func (r *rig) breaks(op efatest.Op, key, value string, f efatest.Fault) *efatest.Armed {
	f.Op, f.Always = op, true
	f.Match = func(req *http.Request) bool { return req.PathValue(key) == value }
	return r.srv.Fault(f)
}

// hasty is an engine whose client tries once and gives up on a message soon.
func hasty(t *testing.T, attempts int) *rig {
	t.Helper()
	r := bareRig(t, storeOf(t), listens)
	var err error
	r.mail, err = efa.New(efa.Config{BaseURL: r.srv.URL(), Project: r.srv.Project(), Key: r.srv.Key(), HTTPClient: r.srv.Client(), Tries: 1})
	require.NoError(t, err)
	r.open(resume.Config{Attempts: attempts})
	return r
}

// ways are how a provider fails to show one message and shows all others.
var ways = map[string]efatest.Fault{
	"500": {Status: 500}, "garbage": {Garbage: "<html>"}, "cut": {Drop: efatest.DropMidBody},
}

// One message that the provider's own fault keeps from being read is treated
// like one that is not there: others are not kept by it.
func TestMessageWhoseReadAlwaysFailsIsPassedAndThenBeforeAPerson(t *testing.T) {
	t.Parallel()
	for name, f := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, _ opener) {
				r := hasty(t, 3)
				sent := r.ask("w1", supplier)
				bad := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "bad"})
				r.breaks(efatest.OpBody, "message", bad.MessageID, f)
				good := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "good"})
				r.rests(11, 10*time.Second)
				require.Empty(t, r.runs(), "both are held back")
				r.rests(4, 10*time.Second)
				require.Equal(t, []string{good.MessageID}, messages(r.last(1)), "after two minutes it goes on without")
				require.Equal(t, int64(1), r.workflow("w1").Pending, "the other is not consumed")
				require.Empty(t, r.queue())

				other := r.ask("w2", "buyer@example.com")
				for range 5 {
					r.srv.Inbound(efatest.Mail{From: "buyer@example.com", ReplyTo: other.MessageID, Text: "still there"})
					r.rests(1, 6*time.Hour)
				}
				it := r.queued()
				require.Equal(t, bad.EventID, it.EventID)
				require.Equal(t, resume.ReasonUnreadable, it.Reason)
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Zero(t, r.workflow("w1").Pending)
			})
		})
	}
}

// rests lets n times d pass, and what is due then happen.
func (r *rig) rests(n int, d time.Duration) {
	r.t.Helper()
	for range n {
		r.jump(d)
		r.rest()
	}
}

// A workflow that waits for nothing but a message which cannot be read: that
// others can be read tells that the provider answers.
func TestOnlyInputWhoseThreadCannotBeReadIsBeforeAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, _ opener) {
		r := hasty(t, 3)
		sent := r.ask("w1", supplier)
		bad := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "bad"})
		r.breaks(efatest.OpThread, "thread", sent.ThreadID, efatest.Fault{Status: 500})
		r.rests(8, 6*time.Hour)
		require.Empty(t, r.queue(), "nothing was read: nobody can know")
		require.Equal(t, resume.StatusRunnable, r.status("w1"))

		other := r.ask("w2", "buyer@example.com")
		for range 6 {
			r.srv.Inbound(efatest.Mail{From: "buyer@example.com", ReplyTo: other.MessageID, Text: "fine"})
			r.rests(1, 6*time.Hour)
		}
		require.Equal(t, bad.EventID, r.queued().EventID)
		require.Equal(t, resume.ReasonUnreadable, r.queued().Reason)
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}

// The matcher's mail, too.
func TestUnplacedMailThatCannotBeReadIsBeforeAPerson(t *testing.T) {
	t.Parallel()
	for name, f := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, _ opener) {
				r := hasty(t, 3)
				r.ask("w1", supplier)
				bad := r.srv.Inbound(efatest.Mail{From: supplier, Text: "bad"})
				r.breaks(efatest.OpThread, "thread", bad.ThreadID, f)
				for range 6 {
					r.srv.Inbound(efatest.Mail{From: supplier, Text: "fine"})
					r.rests(1, 6*time.Hour)
				}
				require.Equal(t, bad.EventID, r.queued().EventID)
				require.Equal(t, resume.ReasonUnreadable, r.queued().Reason)
			})
		})
	}
}

// However long a provider is away, and whatever it does before and after: no
// message is at fault, none is passed by another, none is before a person.
func TestLongOutageOfReadsSettlesNothing(t *testing.T) {
	t.Parallel()
	for name, ops := range map[string][]efatest.Op{"all": {efatest.OpThread, efatest.OpBody}, "bodies": {efatest.OpBody}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, _ opener) {
				r := hasty(t, 10)
				sent, other := r.ask("w1", supplier), r.ask("w2", "buyer@example.com")
				first := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "1"})
				flaps := r.breaks(efatest.OpBody, "message", first.MessageID, efatest.Fault{Status: 503})
				second := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: sent.MessageID, Text: "2"})
				r.rests(3, time.Second)
				var away []*efatest.Armed
				for _, op := range ops {
					away = append(away, r.srv.Fault(efatest.Fault{Op: op, Status: 503, When: efatest.When{Always: true}}))
				}
				r.srv.Inbound(efatest.Mail{From: "buyer@example.com", ReplyTo: other.MessageID, Text: "3"})
				if len(ops) > 1 {
					r.srv.Inbound(efatest.Mail{From: supplier, Text: "on a new thread"})
				}
				r.rests(10, 6*time.Hour)
				require.Empty(t, r.queue())
				require.Empty(t, r.runs())
				for _, f := range away {
					f.Disarm()
				}
				r.rests(3, time.Second)
				flaps.Disarm()
				r.rests(2, time.Hour)
				require.Empty(t, r.queue())
				var got []string
				for _, run := range r.runs() {
					got = append(got, messages(run)...)
				}
				require.Subset(t, got, []string{first.MessageID, second.MessageID})
				require.Zero(t, r.workflow("w1").Pending+r.workflow("w2").Pending)
			})
		})
	}
}
