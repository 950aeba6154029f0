package resumetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	pools   map[int]*pgxpool.Pool
	clocks  clocks
	all     string // selectAll
}

func newPostgres(tb testing.TB, url string) (*pgStore, error) {
	ctx := context.Background()
	s := &pgStore{tb: tb, url: url, schema: "resumetest_" + strings.ToLower(rand.Text()[:12]), pools: map[int]*pgxpool.Pool{}}
	s.dialect = dialect{prefix: s.schema + "."}
	s.all = s.selectAll()
	var err error
	if s.clocks, err = clocksOf(); err != nil {
		return nil, err
	}
	if s.monitor, err = s.pool("monitor", 2); err != nil {
		return nil, err
	}
	script, err := resume.SQL(s.schema)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(s.drop)
	for _, q := range []string{"create schema " + s.schema, script, fmt.Sprintf(createCalls, s.table("resumetest_calls"))} {
		if _, err := s.monitor.Exec(ctx, q); err != nil {
			return nil, fmt.Errorf("make a schema: %w", err)
		}
	}
	return s, nil
}

func (s *pgStore) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, p := range s.pools {
		p.Close()
	}
	if _, err := s.monitor.Exec(ctx, "drop schema if exists "+s.schema+" cascade"); err != nil {
		s.tb.Logf("resumetest: schema %s stays behind: %v", s.schema, err)
	}
	s.monitor.Close()
}

func (s *pgStore) pool(name string, conns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.MaxConns = conns
	cfg.ConnConfig.RuntimeParams["application_name"] = s.application(name)
	// A deadlock is found soon rather than after a second. Only a superuser may
	// say so; for others it takes the second.
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, _ = c.Exec(ctx, "set deadlock_timeout = '50ms'")
		return ctx.Err()
	}
	return pgxpool.NewWithConfig(context.Background(), cfg)
}

func (s *pgStore) application(name string) string { return s.schema + "_" + name }

func (s *pgStore) poolOf(i int) (*pgxpool.Pool, error) {
	if p := s.pools[i]; p != nil {
		return p, nil
	}
	p, err := s.pool(fmt.Sprint(i), 4)
	if err == nil {
		s.pools[i] = p
	}
	return p, err
}

func (s *pgStore) name() string   { return "postgres" }
func (s *pgStore) overlaps() bool { return true }

func (s *pgStore) process(i int, r *rig) (*process, error) {
	pool, err := s.poolOf(i)
	if err != nil {
		return nil, err
	}
	cfg := r.config
	cfg.Schema = s.schema
	cfg.Name = s.schema // advisory locks are the whole database's: no two explorations share one
	p := &process{rig: r, mail: &boundaryMail{rig: r}}
	eng, err := resume.NewPostgres(pool, p.mail, p.step, cfg)
	if err != nil {
		return nil, err
	}
	p.pg, p.engine = eng, eng.Engine
	p.join = func(run *resume.Run, insert func(execer) error) {
		run.InPostgres(func(ctx context.Context, tx pgx.Tx) error {
			return insert(func(_ context.Context, query string, args ...any) error {
				_, err := tx.Exec(ctx, query, args...)
				return err
			})
		})
	}
	p.insertCall = "insert into " + s.table("resumetest_calls") + " values ($1, $2, $3, $4, $5, $6, $7)"
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

func (s *pgStore) shift(ctx context.Context, i int, d time.Duration) error {
	pool, err := s.poolOf(i)
	if err != nil {
		return err
	}
	return inPgx(ctx, pool, func(exec execer) error { return s.shiftAll(ctx, exec, s.clocks, d) })
}

func (s *pgStore) read(ctx context.Context) (*tables, error) {
	return decode(s.monitor.QueryRow(ctx, s.all).Scan)
}

func (s *pgStore) blocked(ctx context.Context, i int) (bool, error) {
	var n int
	err := s.monitor.QueryRow(ctx, `select count(*) from pg_stat_activity where application_name = $1
		and cardinality(pg_blocking_pids(pid)) > 0`, s.application(fmt.Sprint(i))).Scan(&n)
	return n > 0, err
}
