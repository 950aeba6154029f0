package resume_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/resume"
)

// A database that was never migrated says what to do, at every door.
func TestWithoutTables(t *testing.T) {
	t.Parallel()
	r := newRig(t, "postgres", listens, resume.Config{})
	cfg := r.cfg
	cfg.Schema = "never_migrated"
	eng, err := resume.NewPostgres(r.pool, r.mail, listens, cfg)
	require.NoError(t, err)
	ctx := t.Context()
	for name, call := range map[string]func(context.Context) error{
		"start": func(ctx context.Context) error {
			_, err := eng.Start(ctx, nil, resume.Start{Inbox: r.srv.Inbox(), Counterparty: supplier})
			return err
		},
		"signal":   func(ctx context.Context) error { return eng.Signal(ctx, nil, "w1", "s1", nil) },
		"cancel":   func(ctx context.Context) error { return eng.Cancel(ctx, "w1", "ann") },
		"bind":     func(ctx context.Context) error { return eng.Bind(ctx, "evt_1", "w1", "ann") },
		"queue":    func(ctx context.Context) error { _, err := eng.Queue(ctx, "", 0); return err },
		"workflow": func(ctx context.Context) error { _, err := eng.Workflow(ctx, "w1"); return err },
		"backlog":  func(ctx context.Context) error { _, err := eng.Backlog(ctx); return err },
		"forget":   func(ctx context.Context) error { return eng.Forget(ctx, supplier) },
		"work":     func(ctx context.Context) error { _, err := eng.Once(ctx, resume.JobWork); return err },
		"ready":    eng.Ready,
	} {
		require.ErrorIs(t, call(ctx), resume.ErrSchema, name)
	}
}
