package resume_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// Mail that arrives while a workflow's last commit is still under way has two
// candidates: that one was not done yet. (SQLite takes no mail meanwhile.)
func TestMailThatArrivesDuringALongCommitCountsWhoFinishesInIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, "postgres", listens, resume.Config{})
	r.ask("w1", supplier)
	r.ask("w2", supplier)
	r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
		r.joins(run, func(context.Context, func(string) error) error {
			r.srv.Inbound(efatest.Mail{From: supplier, Text: "on a new thread"})
			r.feed()
			return nil
		})
		return resume.Done(), nil
	})
	require.NoError(t, r.signal("w1", "s", ""))
	require.True(t, r.once(resume.JobWork))
	require.Equal(t, resume.StatusDone, r.status("w1"))
	r.do(listens)
	r.rest()
	require.Equal(t, resume.ReasonSeveralCandidates, r.queued().Reason)
	require.Equal(t, resume.StatusWaiting, r.status("w2"))
}
