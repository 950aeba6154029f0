package resumetest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

// A process that is cut off loses its lease, and then goes on beating. That
// must not keep the next owner's lease alive: when that one has died, a third
// must get the workflow.
func TestHeartbeatOfAnotherGeneration(t *testing.T) {
	t.Parallel()
	db, mail, cfg := testdb.SQLite(t), provider(t), resume.Config{Lease: 400 * time.Millisecond, Poll: 20 * time.Millisecond, Drain: time.Millisecond}
	cfg.Inboxes = map[string][]string{"ibx_main": {"agent@test.mail.invalid"}}
	engine := func(step resume.Step) *resume.SQLiteEngine {
		e, err := resume.NewSQLite(db, mail, step, cfg)
		require.NoError(t, err)
		return e
	}
	began, stuck := make(chan struct{}), make(chan struct{})
	first := engine(func(context.Context, *resume.Run) (resume.Next, error) {
		close(began)
		<-stuck // whatever its context says
		return resume.Done(), nil
	})
	_, err := first.Start(t.Context(), nil, resume.Start{ID: "w1", Inbox: "ibx_main", Counterparty: supplier})
	require.NoError(t, err)

	var cutOff atomic.Bool
	cutOff.Store(true)
	ctx, stop := context.WithCancel(sqldb.WithHook(context.Background(), func(point string) error {
		if cutOff.Load() && strings.Contains(point, "held_gen") {
			return errors.New("no route to the database")
		}
		return nil
	}))
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	t.Cleanup(func() { close(stuck); stop(); require.NoError(t, <-ended) })
	<-began

	second := engine(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil })
	require.Eventually(t, func() bool { return claimAndDie(second) }, 10*time.Second, 10*time.Millisecond, "the lease of a process that is cut off does not end")
	cutOff.Store(false)

	third := engine(func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), nil })
	require.Eventually(t, func() bool {
		did, err := third.Once(t.Context(), resume.JobWork)
		return err == nil && did
	}, 30*time.Second, 10*time.Millisecond, "broke L4: the lease of a process that died does not end")
	w, err := third.Workflow(t.Context(), "w1")
	require.NoError(t, err)
	require.Equal(t, resume.StatusDone, w.Status)
}

// claimAndDie is a worker that ends once it has claimed; false if there was
// nothing to claim.
func claimAndDie(e *resume.SQLiteEngine) bool {
	died := false
	did, _ := e.Once(sqldb.WithHook(context.Background(), func(point string) error {
		if died {
			return errors.New("the process has ended")
		}
		died = point == "after commit"
		return nil
	}), resume.JobWork)
	return did
}

func provider(t *testing.T) *efa.Client {
	t.Helper()
	srv := efatest.NewServer(t, efatest.Config{InMemory: true})
	mail, err := efa.New(efa.Config{BaseURL: srv.URL(), Project: srv.Project(), Key: srv.Key(), HTTPClient: srv.Client()})
	require.NoError(t, err)
	return mail
}
