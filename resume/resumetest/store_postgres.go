package resumetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// pgStore is a schema of a Postgres database. Each process has a pool of its
// own, whose connections bear its name, so that the lock manager can be asked
// who waits.
type pgStore struct {
	dialect
	tb      testing.TB
	url     string
	schema  string
	monitor *pgxpool.Pool
	pools   map[string]*pgxpool.Pool
	clocks  clocks
	all     string // selectAll

	zoneless []string
}

func newPostgres(tb testing.TB, url, script string) (*pgStore, error) {
	ctx := context.Background()
	s := &pgStore{tb: tb, url: url, schema: "resumetest_" + strings.ToLower(rand.Text()[:12]), pools: map[string]*pgxpool.Pool{}}
	s.dialect = dialect{prefix: s.schema + "."}
	s.all = s.selectAll()
	var err error
	if s.clocks, err = clocksOf(); err != nil {
		return nil, err
	}
	if s.monitor, err = s.pool("monitor", time.Second); err != nil {
		return nil, err
	}
	tb.Cleanup(s.drop)
	if err := schema.Migrate(ctx, sqldb.Postgres(s.monitor, s.schema, false)); err != nil {
		return nil, err
	}
	if _, err := s.monitor.Exec(ctx, s.create()); err != nil {
		return nil, fmt.Errorf("make the explorer's tables: %w", err)
	}
	if s.own, err = s.make(ctx, script); err != nil {
		return nil, fmt.Errorf("make the scenario's tables: %w", err)
	}
	s.zoneless, err = zoneless(ctx, s.monitor, s.schema)
	return s, err
}

// make runs a script and returns the tables that it makes.
func (s *pgStore) make(ctx context.Context, script string) ([]string, error) {
	before, err := s.named(ctx)
	if err == nil {
		_, err = s.monitor.Exec(ctx, script)
	}
	if err != nil {
		return nil, err
	}
	after, err := s.named(ctx)
	return slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }), err
}

// named are the tables of the schema.
func (s *pgStore) named(ctx context.Context) ([]string, error) {
	rows, err := s.monitor.Query(ctx, "select c.oid::regclass::text from pg_class as c where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') order by c.oid desc", unprepared, s.schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// zoneless are the columns of a schema that hold times without their zone. The
// migrator's own table is not the engine's.
func zoneless(ctx context.Context, pool *pgxpool.Pool, schema string) ([]string, error) {
	rows, err := pool.Query(ctx, `select c.relname || '.' || a.attname from pg_attribute as a join pg_class as c on c.oid = a.attrelid
		where c.relnamespace = $1::regnamespace and c.relkind = 'r' and c.relname <> 'migrations' and a.atttypid in ('timestamp'::regtype, 'date'::regtype, 'time'::regtype)`, unprepared, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s *pgStore) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for name, p := range s.pools {
		if name != "monitor" {
			p.Close()
		}
	}
	if _, err := s.monitor.Exec(ctx, "drop schema if exists "+s.schema+" cascade"); err != nil {
		s.tb.Logf("resumetest: schema %s stays behind: %v", s.schema, err)
	}
	s.monitor.Close()
}

// pool has connections that bear a name. Of two that wait for each other the
// one with the shorter patience is the one that Postgres ends. Only a superuser
// may choose; for others it takes Postgres' own second.
func (s *pgStore) pool(name string, patience time.Duration) (*pgxpool.Pool, error) {
	if p := s.pools[name]; p != nil {
		return p, nil
	}
	cfg, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.MaxConns = 4
	cfg.ConnConfig.RuntimeParams["application_name"] = s.application(name)
	cfg.ConnConfig.RuntimeParams["search_path"] = s.schema // for the user's tables
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, _ = c.Exec(ctx, fmt.Sprintf("set deadlock_timeout = %d", patience.Milliseconds()))
		return ctx.Err()
	}
	p, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err == nil {
		s.pools[name] = p
	}
	return p, err
}

func (s *pgStore) application(name string) string { return s.schema + "_" + name }

// The names of a process's connections: its own, and its clock's.
func names(i int) (own, clock string) { return fmt.Sprint(i), fmt.Sprintf("%d_clock", i) }

func (s *pgStore) name() string   { return "postgres" }
func (s *pgStore) overlaps() bool { return true }

func (s *pgStore) process(i int, r *rig) (*process, error) {
	own, _ := names(i)
	pool, err := s.pool(own, 200*time.Millisecond)
	if err != nil {
		return nil, err
	}
	cfg := r.config
	cfg.Schema = s.schema
	cfg.Name = s.schema // advisory locks are the whole database's: no two explorations share one
	p := &process{rig: r, mail: &boundaryMail{rig: r}, db: sqldb.Postgres(pool, s.schema, false), dialect: s.dialect}
	eng, err := resume.NewPostgres(pool, p.mail, p.step, cfg)
	if err != nil {
		return nil, err
	}
	p.pg, p.engine, p.pool = eng, eng.Engine, pool
	p.join = func(run *resume.Run, insert func(execer) error) {
		run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
			return insert(func(_ context.Context, query string, args ...any) error {
				_, err := tx.Exec(ctx, query, args...)
				return err
			})
		})
	}
	p.inbox, err = newPostgresInbox(pool, s.schema, r, eng)
	return p, err
}

func inPgx(ctx context.Context, pool *pgxpool.Pool, fn func(execer) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return fn(func(ctx context.Context, query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		})
	})
}

func (s *pgStore) reset(ctx context.Context) error {
	return inPgx(ctx, s.monitor, func(exec execer) error {
		return exec(ctx, "do $$ begin "+strings.Join(s.empty(), "; ")+"; end $$")
	})
}

// shift writes to rows that the run's transactions may hold. It is no part of
// what is explored: where they and it wait for each other, it begins again.
func (s *pgStore) shift(ctx context.Context, i int, d time.Duration) error {
	_, clock := names(i)
	pool, err := s.pool(clock, 10*time.Millisecond) //nolint:contextcheck // it outlives this call
	if err != nil {
		return err
	}
	for {
		err := inPgx(ctx, pool, func(exec execer) error { return s.shiftAll(ctx, exec, s.clocks, d) })
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "40P01" {
			return err
		}
	}
}

func (s *pgStore) read(ctx context.Context) (*tables, error) {
	t, err := decode(s.monitor.QueryRow(ctx, s.all).Scan)
	if err == nil {
		t.zoneless = s.zoneless
	}
	return t, err
}

func (s *pgStore) blocked(ctx context.Context, i int) (bool, error) {
	var n int
	own, clock := names(i)
	// Others, such as a vacuum, are waited for too, and go away by themselves. So do
	// hints, which are sent beside the actors and queue for a lock of all NOTIFYs.
	err := s.monitor.QueryRow(ctx, `select count(*) from pg_stat_activity as a join pg_stat_activity as b on b.pid = any(pg_blocking_pids(a.pid))
		where a.application_name in ($1, $2) and starts_with(b.application_name, $3) and a.query not like '%pg_notify%'`,
		s.application(own), s.application(clock), s.application("")).Scan(&n)
	return n > 0, err
}

func (s *pgStore) plan(ctx context.Context, query string, args []any) (plan string, err error) {
	err = pgx.BeginFunc(ctx, s.monitor, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local enable_seqscan = off"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "explain "+query, args...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}
