package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

// BenchmarkClaim: one workflow claimed, its step run, the result committed,
// while so many others wait. "idle" is a look that finds nothing. The cost
// must not depend on how many wait.
func BenchmarkClaim(b *testing.B) {
	for _, waiting := range []int{10_000, 1_000_000} {
		db := testdb.Postgres(b)
		pool := poolOf(b, db, 4)
		eng := waitingEngine(b, pool, db.Schema, waiting)
		b.Run(fmt.Sprintf("idle/%d", waiting), func(b *testing.B) {
			for b.Loop() {
				did, err := eng.Once(b.Context(), resume.JobWork)
				require.NoError(b, err)
				require.False(b, did)
			}
		})
		b.Run(fmt.Sprintf("run/%d", waiting), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				execSQL(b, pool, `update %s.workflows set status = 'runnable', kick = true, due = now() where engine = 'default' and id = 'w' || %d`, db.Schema, rand.IntN(waiting))
				b.StartTimer()
				did, err := eng.Once(b.Context(), resume.JobWork)
				require.NoError(b, err)
				require.True(b, did)
			}
		})
	}
}

// waitingEngine has n waiting workflows, half of them with a deadline.
func waitingEngine(b *testing.B, pool *pgxpool.Pool, schema string, n int) *resume.PostgresEngine {
	mail, err := efa.New(efa.Config{Project: "prj_bench", Key: "efa_test_bench"})
	require.NoError(b, err)
	step := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }
	eng, err := resume.NewPostgres(pool, mail, step, resume.Config{Schema: schema, Inboxes: map[string][]string{"ibx_main": {"agent@agents.example"}}})
	require.NoError(b, err)
	require.NoError(b, eng.Migrate(b.Context()))
	execSQL(b, pool, `insert into %[1]s.workflows (engine, id, run, kind, inbox, counterparty, status, due, deadline, created_at, updated_at)
		select 'default', 'w' || n, 'r' || n, '', 'ibx_main', 'c' || n || '@example.com', 'waiting', t, t, now(), now()
		from (select n, case when n %% 2 = 0 then now() + interval '30 days' end as t from generate_series(0, %[2]d) n) as x`, schema, n-1)
	execSQL(b, pool, `vacuum analyze %s.workflows`, schema)
	return eng
}
