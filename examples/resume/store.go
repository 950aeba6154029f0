package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // a driver without cgo; the libraries take any

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/resume"
)

// store is the database: Postgres for any number of processes, SQLite for one.
// A service that needs only one of them calls the constructors itself.
type store interface {
	ping(ctx context.Context) error
	engine(mail resume.Mail, step resume.Step, cfg resume.Config) (*resume.Engine, error)
	inbox(cfg dedupe.Config) (*dedupe.Inbox, error) // of the engine made before

	// start begins a workflow under an ID that was never used, else
	// [resume.ErrExists]. A workflow can start in the transaction that writes
	// your own rows; this service has none.
	start(ctx context.Context, s resume.Start) error

	close()
}

func openStore(ctx context.Context, databaseURL string) (store, error) {
	if path, lite := strings.CutPrefix(databaseURL, "sqlite:"); lite {
		return openSQLite(path)
	}
	return openPostgres(ctx, databaseURL)
}

const databasePatience = time.Minute

// errNotAway is a database for which there is nothing to wait.
var errNotAway = errors.New("the database cannot be used")

// waitForDatabase calls fn until it succeeds, as long as ctx allows: when
// everything starts at once, the database is often the last.
func waitForDatabase(ctx context.Context, log *slog.Logger, fn func(context.Context) error) error {
	for {
		err := fn(ctx)
		if err == nil || errors.Is(err, errNotAway) || errors.Is(err, resume.ErrStream) {
			return err
		}
		log.Warn("waiting for the database", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the database was not there within %s: %w", databasePatience, err)
			}
			return ctx.Err()
		}
	}
}

type postgres struct {
	pool *pgxpool.Pool
	eng  *resume.PostgresEngine
}

func openPostgres(ctx context.Context, databaseURL string) (*postgres, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	// Webhooks that come together share a commit, so they need few connections;
	// 8 runs and 8 sends at once are the engine's default. One more connection
	// listens, outside the pool.
	if !strings.Contains(databaseURL, "pool_max_conns") {
		cfg.MaxConns = max(cfg.MaxConns, 16)
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg) // connects when it is needed
	return &postgres{pool: pool}, err
}

func (p *postgres) ping(ctx context.Context) error { return p.pool.Ping(ctx) }

func (p *postgres) engine(mail resume.Mail, step resume.Step, cfg resume.Config) (*resume.Engine, error) {
	var err error
	if p.eng, err = resume.NewPostgres(p.pool, mail, step, cfg); err != nil {
		return nil, err
	}
	return p.eng.Engine, nil
}

func (p *postgres) inbox(cfg dedupe.Config) (*dedupe.Inbox, error) {
	return dedupe.NewPostgres(p.pool, cfg, p.eng.Route)
}

func (p *postgres) start(ctx context.Context, s resume.Start) error {
	_, err := p.eng.Start(ctx, nil, s)
	return err
}

func (p *postgres) close() { p.pool.Close() }

type sqlite struct {
	db  *sql.DB
	eng *resume.SQLiteEngine
}

func openSQLite(path string) (*sqlite, error) {
	// immediate: a transaction has the write lock before it reads.
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	return &sqlite{db: db}, nil
}

// ping opens the file, which does not get better by waiting.
func (s *sqlite) ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotAway, err)
	}
	return nil
}

func (s *sqlite) engine(mail resume.Mail, step resume.Step, cfg resume.Config) (*resume.Engine, error) {
	var err error
	if s.eng, err = resume.NewSQLite(s.db, mail, step, cfg); err != nil {
		return nil, err
	}
	return s.eng.Engine, nil
}

func (s *sqlite) inbox(cfg dedupe.Config) (*dedupe.Inbox, error) {
	return dedupe.NewSQLite(s.db, cfg, s.eng.Route)
}

func (s *sqlite) start(ctx context.Context, start resume.Start) error {
	_, err := s.eng.Start(ctx, nil, start)
	return err
}

func (s *sqlite) close() { _ = s.db.Close() }
