package resume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// A workflow is canceled while its mail has not left, and opened again: it
// does not wait for the answer to mail that nobody got.
func TestReopenAfterMailThatNeverLeft(t *testing.T) {
	t.Parallel()
	start := func(r *rig) { r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)}) }
	tried := func(r *rig) {
		r.srv.Fault(efatest.Fault{Op: efatest.OpSend, Status: 503})
		start(r)
		r.rest()
	}
	end := func(f efatest.Fault) func(*rig) {
		f.Op = efatest.OpSend
		return func(r *rig) {
			r.srv.Fault(f)
			r.jump(time.Hour)
			r.rest()
		}
	}
	for name, c := range map[string]struct {
		begin  func(*rig)
		cancel func(*rig) // what happens once it is canceled
		status resume.Status
		input  resume.InputKind
	}{
		"dropped":  {start, func(*rig) {}, resume.StatusWaiting, resume.InputSendError},
		"refused":  {tried, end(efatest.Fault{Status: 422, Code: "recipient_suppressed"}), resume.StatusWaiting, resume.InputSendError},
		"in doubt": {tried, end(efatest.Fault{Status: 409, Code: "idempotency_conflict"}), resume.StatusNeedsReview, ""},
		"left":     {tried, end(efatest.Fault{}), resume.StatusWaiting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				c.begin(r)
				require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
				c.cancel(r)
				for range 2 { // again: what was told is told
					require.NoError(t, r.eng.Reopen(t.Context(), "w1", "ann"))
					r.rest()
					require.Equal(t, c.status, r.status("w1"))
					require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
				}
				if c.input == "" {
					require.Empty(t, r.runs())
				} else {
					require.Equal(t, c.input, r.last(1).Inputs[0].Kind)
				}
			})
		})
	}
}

// What a cancel takes from the step, other than mail, is there again.
func TestReopenGivesBackWhatCancelTook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{})
		r.ask("w1", supplier)
		require.NoError(t, r.signal("w1", "paid", "42"))
		for range 2 {
			require.NoError(t, r.eng.Cancel(t.Context(), "w1", "ann"))
			require.NoError(t, r.eng.Reopen(t.Context(), "w1", "ann"))
		}
		r.rest()
		in := r.last(1).Inputs
		require.Len(t, in, 1)
		require.Equal(t, "paid", in[0].Signal)
		require.Equal(t, "42", string(in[0].Data))
		require.Equal(t, resume.StatusWaiting, r.status("w1"))
	})
}
