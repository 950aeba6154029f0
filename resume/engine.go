package resume

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
)

// Step is the user's part of a workflow: it is given what arrived and says
// what comes next. It may run again for the same inputs after a crash; only
// the result that commits counts. An error or a panic is tried again with
// back-off, Config.Attempts times, then a person is asked.
type Step func(ctx context.Context, run *Run) (Next, error)

// Engine is what an engine offers without a transaction: its loops and what
// people do. It is safe for concurrent use.
type Engine struct {
	db   *sqldb.DB
	st   statements
	mail Mail
	step Step
	cfg  Config
	own  map[string]map[string]bool // inbox -> its own addresses, normalised
	log  *slog.Logger
	tel  telemetry

	stream string // events and threads of this stream are the engine's
	owner  string // unique to this process's start
	bells  bells
	runs   runs
	notice notice
	reads  quota
	listed evidence     // of threads
	bodies evidence     // of messages
	taken  atomic.Bool  // the name is the stream's
	refuse atomic.Int64 // when the provider last refused the credential, Unix seconds; 0 is never
}

// PostgresEngine is an engine on Postgres.
type PostgresEngine struct{ *Engine }

// SQLiteEngine is an engine on SQLite, for one process.
type SQLiteEngine struct{ *Engine }

// NewPostgres makes an engine on a pool. Call Migrate, or apply [SQL], before
// anything else. It reports every fault of the configuration at once.
func NewPostgres(pool *pgxpool.Pool, mail Mail, step Step, cfg Config) (*PostgresEngine, error) {
	if pool == nil {
		return nil, errors.Join(errors.New("resume: no pool"), cfg.validate())
	}
	cfg = cfg.withDefaults()
	e, err := newEngine(sqldb.Postgres(pool, cfg.Schema, cfg.Pooler), mail, step, cfg)
	if err != nil {
		return nil, err
	}
	return &PostgresEngine{e}, nil
}

// NewSQLite makes an engine on a database in a file, which the caller opened
// with a driver of their choice, and migrates it. One process may use it.
func NewSQLite(db *sql.DB, mail Mail, step Step, cfg Config) (*SQLiteEngine, error) {
	if db == nil {
		return nil, errors.Join(errors.New("resume: no database"), cfg.validate())
	}
	e, err := newEngine(sqldb.SQLite(db), mail, step, cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	return &SQLiteEngine{e}, e.Migrate(context.Background())
}

func newEngine(db *sqldb.DB, mail Mail, step Step, cfg Config) (*Engine, error) {
	err := cfg.validate()
	if mail == nil {
		err = errors.Join(err, errors.New("resume: no Mail"))
	}
	if step == nil {
		err = errors.Join(err, errors.New("resume: no Step"))
	}
	if err != nil {
		return nil, err
	}
	db.Old = ErrSchema
	e := &Engine{
		db: db, st: newStatements(db.Dialect), mail: mail, step: step, cfg: cfg, own: map[string]map[string]bool{}, log: cfg.Logger,
		stream: mail.Stream().Name, owner: rand.Text(), bells: newBells(), reads: quota{most: readsAMinute},
	}
	if e.tel, err = newTelemetry(cfg); err != nil {
		return nil, fmt.Errorf("resume: telemetry: %w", err)
	}
	for inbox, addresses := range cfg.Inboxes {
		e.own[inbox] = map[string]bool{}
		for _, a := range addresses {
			n, _ := client.NormalizeAddress(a) // validate looked
			e.own[inbox][n] = true
		}
	}
	return e, nil
}

// Migrate brings the database to the engine's schema. Several processes may
// call it at once. A name that another stream's engine has is [ErrStream].
func (e *Engine) Migrate(ctx context.Context) error {
	if err := schema.Migrate(ctx, e.db); err != nil {
		return err
	}
	return e.take(ctx)
}

// SQL is the Postgres schema as a script, for those who run their own
// migrations.
func SQL(schemaName string) (string, error) {
	return schema.SQL(sqldb.Dialect{Schema: schemaName})
}

// Route places fresh events: give it to a dedupe.Inbox as its handler. It only
// looks up keys; what it cannot place is the matcher's.
func (e *PostgresEngine) Route(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
	return e.route(ctx, e.db.FromPgx(tx), fresh)
}

// Route places fresh events: give it to a dedupe.Inbox as its handler. It only
// looks up keys; what it cannot place is the matcher's.
func (e *SQLiteEngine) Route(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
	return e.route(ctx, e.db.FromSQL(tx), fresh)
}

// Start begins a workflow in the caller's transaction, or in one of its own if
// tx is nil, and returns its ID. See [Start] for the fields. An ID that a live
// workflow has is [ErrExists]; one that a finished workflow had begins a new
// run. Call Wake after committing a transaction of yours.
func (e *PostgresEngine) Start(ctx context.Context, tx pgx.Tx, s Start) (string, error) {
	if tx == nil {
		return e.startAlone(ctx, s)
	}
	return e.start(ctx, e.db.FromPgx(tx), s)
}

// Start begins a workflow in the caller's transaction, or in one of its own if
// tx is nil, and returns its ID. See [Start] for the fields. An ID that a live
// workflow has is [ErrExists]; one that a finished workflow had begins a new
// run. Call Wake after committing a transaction of yours; begin it with a write,
// or open the database with immediate transactions, or SQLite may refuse the
// write that follows a read (SQLITE_BUSY).
func (e *SQLiteEngine) Start(ctx context.Context, tx *sql.Tx, s Start) (string, error) {
	if tx == nil {
		return e.startAlone(ctx, s)
	}
	return e.start(ctx, e.db.FromSQL(tx), s)
}

// Signal gives a workflow an input of your own (a click, a payment) in the
// caller's transaction, or in one of its own if tx is nil. The same signal ID
// for the same run again is no second input. data is handed to the step as it
// is.
func (e *PostgresEngine) Signal(ctx context.Context, tx pgx.Tx, workflow, id string, data []byte) error {
	if tx == nil {
		return e.signalAlone(ctx, workflow, id, data)
	}
	return e.signal(ctx, e.db.FromPgx(tx), workflow, id, data)
}

// Signal gives a workflow an input of your own (a click, a payment) in the
// caller's transaction, or in one of its own if tx is nil. The same signal ID
// for the same run again is no second input. data is handed to the step as it
// is.
func (e *SQLiteEngine) Signal(ctx context.Context, tx *sql.Tx, workflow, id string, data []byte) error {
	if tx == nil {
		return e.signalAlone(ctx, workflow, id, data)
	}
	return e.signal(ctx, e.db.FromSQL(tx), workflow, id, data)
}

func (e *Engine) startAlone(ctx context.Context, s Start) (id string, err error) {
	err = e.db.Tx(ctx, func(tx sqldb.Tx) error {
		id, err = e.start(ctx, tx, s)
		return err
	})
	e.Wake()
	return id, err
}

func (e *Engine) signalAlone(ctx context.Context, workflow, id string, data []byte) error {
	err := e.db.Tx(ctx, func(tx sqldb.Tx) error { return e.signal(ctx, tx, workflow, id, data) })
	e.Wake()
	return err
}

// Ready is nil if the database answers, its schema is current ([ErrSchema]) and
// the provider accepts the credential ([ErrRefused]).
func (e *Engine) Ready(ctx context.Context) error {
	current, err := schema.Current(ctx, e.db)
	switch {
	case err != nil:
		return fmt.Errorf("resume: database: %w", err)
	case !current:
		return ErrSchema
	case e.refuse.Load() != 0:
		return ErrRefused
	}
	return nil
}

// refused says whether the provider refused the credential so lately that it
// is not asked again yet.
func (e *Engine) refused() bool {
	at := e.refuse.Load()
	return at != 0 && time.Since(time.Unix(at, 0)) < patience
}

func (e *Engine) credential(ok bool) {
	if ok {
		e.refuse.Store(0)
		return
	}
	e.refuse.Store(time.Now().Unix())
}

// keys for the advisory locks: of an address of an inbox, and of a thread.
func (e *Engine) addressKey(inbox, address string) string {
	return "address\x1f" + e.cfg.Name + "\x1f" + inbox + "\x1f" + address
}

func (e *Engine) threadKey(inbox, thread string) string {
	return "thread\x1f" + e.cfg.Name + "\x1f" + e.stream + "\x1f" + inbox + "\x1f" + thread
}

// lockKeys takes the keys' locks until the transaction ends, in order.
func (e *Engine) lockKeys(ctx context.Context, tx sqldb.Tx, keys ...string) error {
	if e.st.LockKeys == "" {
		return nil
	}
	return tx.Query(ctx, e.st.LockKeys, []any{keys}, func(sqldb.Scan) error { return nil })
}

func (e *Engine) lockShared(ctx context.Context, tx sqldb.Tx, key string) error {
	if e.st.LockShared == "" {
		return nil
	}
	return tx.Query(ctx, e.st.LockShared, []any{key}, func(sqldb.Scan) error { return nil })
}

// now is the database's clock.
func (e *Engine) now(ctx context.Context, tx sqldb.Tx) (time.Time, error) {
	var t time.Time
	err := sqldb.One(ctx, tx, e.st.Now, nil, &t)
	return t, err
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
