package dedupe_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := dedupe.NewPostgres(nil, dedupe.Config{
		Schema: "My Schema", GroupSize: -1, CommitTimeout: -1, GiveUpAfter: 60 * 24 * time.Hour, RetainContent: 31 * 24 * time.Hour,
	}, nil)
	require.ErrorIs(t, err, dedupe.ErrConfig)
	require.ErrorIs(t, err, dedupe.Err)
	for _, part := range []string{"Stream.Name", "Schema", "GroupSize", "CommitTimeout", "GiveUpAfter", "RetainContent", "pool", "handler"} {
		require.ErrorContains(t, err, part)
	}
	_, err = dedupe.NewSQLite(nil, dedupe.Config{Stream: stream}, func(context.Context, *sql.Tx, []events.Event) error { return nil })
	require.ErrorIs(t, err, dedupe.ErrConfig)
}

func TestConstructingAsksNothingOfPostgres(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.pool.Close()
	in, err := dedupe.NewPostgres(s.pool, dedupe.Config{Stream: stream}, func(context.Context, pgx.Tx, []events.Event) error { return nil })
	require.NoError(t, err)
	require.Equal(t, stream, in.Stream())
	_, err = in.Push(t.Context(), pushed(1))
	require.ErrorIs(t, err, dedupe.Err)
}
