package dedupe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
)

// Inbox hands each event of a stream to a handler once. Build it with
// [NewPostgres] or [NewSQLite]. It is safe for concurrent use, and any number
// of processes may have an Inbox of one stream on one database.
type Inbox struct {
	cfg     Config
	log     *slog.Logger
	db      *sqldb.DB
	st      statements
	handler func(ctx context.Context, tx sqldb.Tx, fresh []events.Event) error
	queue   queue
	opened  atomic.Bool
	looked  looked
	tel     telemetry
}

var _ events.Receiver = (*Inbox)(nil)

// NewPostgres returns an Inbox on a Postgres pool, or every fault of its
// arguments at once. It asks nothing of the database; see [Inbox.Migrate].
//
// The handler gets the events that were not seen before, in the order in which
// they came. It writes with tx and must neither commit nor roll it back. An
// error undoes everything; so does a panic, which counts as an error.
func NewPostgres(pool *pgxpool.Pool, cfg Config, handler func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.faults(), required("pool", pool != nil), required("handler", handler != nil)); err != nil {
		return nil, err
	}
	return newInbox(sqldb.Postgres(pool, cfg.Schema, cfg.Pooler), cfg,
		func(ctx context.Context, tx sqldb.Tx, fresh []events.Event) error {
			return handler(ctx, tx.Native().(pgx.Tx), fresh)
		})
}

// NewSQLite is [NewPostgres] for a SQLite database of any driver, and creates
// the tables. The database must be a file. SQLite has one writer: a handler
// that writes with db instead of tx waits for itself.
func NewSQLite(db *sql.DB, cfg Config, handler func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.faults(), required("database", db != nil), required("handler", handler != nil)); err != nil {
		return nil, err
	}
	in, err := newInbox(sqldb.SQLite(db), cfg,
		func(ctx context.Context, tx sqldb.Tx, fresh []events.Event) error {
			return handler(ctx, tx.Native().(*sql.Tx), fresh)
		})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := in.Migrate(ctx); err != nil {
		return nil, err
	}
	return in, nil
}

func required(what string, given bool) error {
	if given {
		return nil
	}
	return fmt.Errorf("%w: a %s is required", ErrConfig, what)
}

func newInbox(db *sqldb.DB, cfg Config, handler func(context.Context, sqldb.Tx, []events.Event) error) (*Inbox, error) {
	tel, err := newTelemetry(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	db.Old = ErrNotMigrated
	return &Inbox{
		cfg: cfg, db: db, st: render(db.Dialect), handler: handler, tel: tel,
		log:   cfg.Logger.With(slog.String("stream", cfg.Stream.Name)),
		queue: queue{most: cfg.MaxWaiting},
	}, nil
}

// Migrate creates the tables or brings them up to date. Several processes may
// call it at once. They are shared with package resume.
func (in *Inbox) Migrate(ctx context.Context) error {
	if err := schema.Migrate(ctx, in.db); err != nil {
		return fmt.Errorf("%w: %w", Err, err)
	}
	return nil
}

// Stream is the stream whose events the inbox takes.
func (in *Inbox) Stream() events.Stream { return in.cfg.Stream }

// name is the key of everything stored.
func (in *Inbox) name() string { return in.cfg.Stream.Name }

// exec runs a statement in a transaction of its own and says how many rows it
// changed.
func (in *Inbox) exec(ctx context.Context, what, query string, args ...any) (n int64, err error) {
	err = in.inTx(ctx, what, func(tx sqldb.Tx) (err error) {
		n, err = tx.Exec(ctx, query, args...)
		return err
	})
	return n, err
}

// inTx runs fn in a transaction, in a stream that has been opened.
func (in *Inbox) inTx(ctx context.Context, what string, fn func(sqldb.Tx) error) error {
	err := in.open(ctx)
	if err == nil {
		err = in.db.Tx(ctx, fn)
	}
	return wrap(what, err)
}

func wrap(what string, err error) error {
	if err == nil || errors.Is(err, Err) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", Err, what, err)
}
