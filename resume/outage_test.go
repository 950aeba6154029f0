package resume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// The answer to a send is lost, and for hours nobody can ask for it. What
// comes about it meanwhile is news once we know the send again.
func TestNewsOfASendInALongOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold  bool
		news  func(t *testing.T, r *rig, s efatest.Send)
		input resume.InputKind // that the step gets, if any
	}{
		"approved": {true, func(_ *testing.T, r *rig, s efatest.Send) { r.approve(s) }, ""},
		"rejected": {true, func(t *testing.T, r *rig, s efatest.Send) {
			t.Helper()
			require.NoError(t, r.srv.Reject(s.ApprovalID))
		}, resume.InputRejected},
		"bounced": {false, func(_ *testing.T, r *rig, s efatest.Send) { r.srv.DeliveryUpdate(s.MessageID, "bounced") }, resume.InputBounce},
		"approved and bounced": {true, func(_ *testing.T, r *rig, s efatest.Send) {
			r.srv.DeliveryUpdate(r.approve(s).MessageID, "bounced")
		}, resume.InputBounce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				if c.hold {
					r.srv.HoldSends(efatest.All)
				}
				outage := r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: efatest.When{Always: true}})
				r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				r.rest()
				c.news(t, r, r.srv.Sends()[0])
				for range 12 {
					r.jump(15 * time.Minute)
					r.rest()
				}
				require.Equal(t, resume.StatusSending, r.status("w1"))
				outage.Disarm()
				for range 3 {
					r.jump(15 * time.Minute)
					r.rest()
				}
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Empty(t, r.queue())
				if c.input == "" {
					require.Empty(t, r.runs())
				} else {
					require.Equal(t, c.input, r.last(1).Inputs[0].Kind)
				}
				require.Len(t, r.srv.Sends(), 1)
			})
		})
	}
}
