package sqldb

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type pgQuerier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

type pgTx struct {
	q      pgQuerier
	native pgx.Tx
	pooler bool
	old    error
}

func (t pgTx) Native() any { return t.native }

func (t pgTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := at(ctx, query); err != nil {
		return 0, err
	}
	tag, err := t.q.Exec(ctx, query, t.args(args)...)
	return tag.RowsAffected(), orOld(err, t.old)
}

func (t pgTx) Query(ctx context.Context, query string, args []any, row func(Scan) error) error {
	if err := at(ctx, query); err != nil {
		return err
	}
	rows, err := t.q.Query(ctx, query, t.args(args)...)
	if err == nil {
		err = read(rows, row)
	}
	return orOld(err, t.old)
}

func read(rows pgx.Rows, row func(Scan) error) error {
	defer rows.Close()
	scan := func(dst ...any) error { return rows.Scan(nullable(dst, pgTime)...) }
	for rows.Next() {
		if err := row(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Together goes one by one where statements cannot be prepared, and where a
// test looks at each boundary.
func (t pgTx) Together(ctx context.Context, statements ...Statement) (err error) {
	if t.pooler || len(statements) < 2 || HookOf(ctx) != nil {
		return apart(ctx, t, statements)
	}
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s.Query, t.args(s.Args)...)
	}
	results := t.q.SendBatch(ctx, batch)
	defer func() { err = cmp.Or(err, results.Close()) }()
	for _, s := range statements {
		rows, err := results.Query()
		if err == nil {
			err = read(rows, s.Row)
		}
		if err != nil {
			return orOld(err, t.old)
		}
	}
	return nil
}

func (t pgTx) args(args []any) []any {
	out := make([]any, 0, len(args)+1)
	if t.pooler {
		out = append(out, pgx.QueryExecModeExec)
	}
	for _, a := range args {
		switch v := a.(type) {
		case string:
			a = Text(v)
		case []string:
			a = texts(v)
		case time.Time:
			if v.IsZero() {
				a = nil
			}
		case time.Duration:
			a = v.Microseconds()
		case Rows:
			a = v.json()
		}
		out = append(out, a)
	}
	return out
}

// pgTime is a *time.Time that takes NULL as the zero time.
func pgTime(dst *time.Time) any { return &nullTime{dst} }

type nullTime struct{ dst *time.Time }

func (n *nullTime) Scan(src any) error {
	t, _ := src.(time.Time)
	*n.dst = t
	return nil
}

func nullable(dst []any, wrap func(*time.Time) any) []any {
	out := make([]any, len(dst))
	for i, d := range dst {
		if t, ok := d.(*time.Time); ok {
			d = wrap(t)
		}
		out[i] = d
	}
	return out
}
