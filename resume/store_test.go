package resume_test

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The rig's own look into the store: time that passes, and rows that are counted.

// times are all columns of the tables that hold a moment.
var times = map[string][]string{
	"workflows": {"due", "deadline", "created_at", "updated_at", "finished_at"},
	"threads":   {"at"},
	"mail":      {"due", "unread_since", "decided_at", "arrived_at"},
	"sends":     {"first_attempt", "due", "created_at", "settled_at", "kept_from"},
	"history":   {"at"},
	"streams":   {"attached_at", "through", "lease_until", "created_at"},
}

// jump lets d pass, for the store and the provider.
func (r *rig) jump(d time.Duration) {
	r.t.Helper()
	r.srv.Advance(d)
	back := micros(d)
	if r.store == "postgres" {
		back += " * interval '1 microsecond'"
	}
	for table, columns := range times {
		var set []string
		for _, c := range columns {
			set = append(set, c+" = "+c+" - "+back)
		}
		r.exec("update {s}" + table + " set " + strings.Join(set, ", "))
	}
}

func (r *rig) sql(query string) string {
	if r.store == "postgres" {
		return strings.ReplaceAll(query, "{s}", pgx.Identifier{r.cfg.Schema}.Sanitize()+".")
	}
	return strings.ReplaceAll(query, "{s}", "replywake_")
}

func (r *rig) exec(query string) {
	r.t.Helper()
	r.unlessBusy(func() (err error) {
		if r.pool != nil {
			_, err = r.pool.Exec(context.Background(), r.sql(query))
		} else {
			_, err = r.db.ExecContext(context.Background(), r.sql(query))
		}
		return err
	})
}

// count reads one number of the store.
func (r *rig) count(query string) (n int) {
	r.t.Helper()
	r.unlessBusy(func() error {
		if r.pool != nil {
			return r.pool.QueryRow(context.Background(), r.sql(query)).Scan(&n)
		}
		return r.db.QueryRowContext(context.Background(), r.sql(query)).Scan(&n)
	})
	return n
}

// unlessBusy waits while the engine is SQLite's one writer.
func (r *rig) unlessBusy(query func() error) {
	r.t.Helper()
	err := query()
	for err != nil && strings.Contains(err.Error(), "locked") {
		err = query()
	}
	require.NoError(r.t, err)
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// pairs reads two texts a row.
func (r *rig) pairs(query string) (out [][2]string) {
	r.t.Helper()
	if r.pool != nil {
		rows, err := r.pool.Query(context.Background(), query)
		require.NoError(r.t, err)
		defer rows.Close()
		for rows.Next() {
			var p [2]string
			require.NoError(r.t, rows.Scan(&p[0], &p[1]))
			out = append(out, p)
		}
		require.NoError(r.t, rows.Err())
		return out
	}
	rows, err := r.db.QueryContext(context.Background(), query)
	require.NoError(r.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p [2]string
		require.NoError(r.t, rows.Scan(&p[0], &p[1]))
		out = append(out, p)
	}
	require.NoError(r.t, rows.Err())
	return out
}

// table is a column as the store has it.
func (r *rig) table(column string) string {
	return map[string]string{"postgres": "", "sqlite": "replywake_"}[r.store] + column
}

func replaced(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
