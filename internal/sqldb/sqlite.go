package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

type liteQuerier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type liteTx struct {
	q      liteQuerier
	native *sql.Tx
	old    error
}

func (t liteTx) Native() any { return t.native }

func (t liteTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := at(ctx, query); err != nil {
		return 0, err
	}
	res, err := t.q.ExecContext(ctx, query, liteArgs(args)...)
	if err != nil {
		return 0, orOld(err, t.old)
	}
	return res.RowsAffected()
}

func (t liteTx) Query(ctx context.Context, query string, args []any, row func(Scan) error) error {
	if err := at(ctx, query); err != nil {
		return err
	}
	rows, err := t.q.QueryContext(ctx, query, liteArgs(args)...)
	if err != nil {
		return orOld(err, t.old)
	}
	defer func() { _ = rows.Close() }()
	scan := func(dst ...any) error { return rows.Scan(nullable(dst, liteTime)...) }
	for rows.Next() {
		if err := row(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t liteTx) Together(ctx context.Context, statements ...Statement) error {
	return apart(ctx, t, statements)
}

func liteArgs(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case time.Time:
			a = micros(v)
		case time.Duration:
			a = v.Microseconds()
		case string:
			a = Text(v)
		case []string:
			a = list(texts(v))
		case []int64:
			a = list(v)
		case Rows:
			a = v.json()
		}
		out[i] = a
	}
	return out
}

func list[T any](v []T) string {
	if v == nil {
		return "[]"
	}
	b, _ := json.Marshal(v) // strings and integers always marshal
	return string(b)
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func liteTime(dst *time.Time) any { return &microTime{dst} }

// microTime reads microseconds; NULL is the zero time.
type microTime struct{ dst *time.Time }

func (m *microTime) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*m.dst = time.Time{}
	case int64:
		*m.dst = time.UnixMicro(v)
	default:
		return fmt.Errorf("read a time: want microseconds, have %T", src)
	}
	return nil
}
