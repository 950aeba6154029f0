package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsTransient says whether the same transaction may succeed at once: a
// deadlock, a serialization failure, a busy SQLite database.
func IsTransient(err error) bool {
	switch code(err) {
	case "40P01", "40001":
		return true
	}
	return isBusy(err)
}

// IsLockTimeout says whether a lock was not had within lock_timeout.
func IsLockTimeout(err error) bool { return code(err) == "55P03" }

// IsUnavailable says whether the database cannot be reached, is starting or
// stopping, or has cut the connection, also because this process stood still in
// a transaction: nothing is wrong with the work.
func IsUnavailable(err error) bool {
	if err == nil {
		return false
	}
	if c := code(err); c != "" {
		return strings.HasPrefix(c, "08") || strings.HasPrefix(c, "57P") || strings.HasPrefix(c, "53") || c == "25P03"
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool") || isBroken(err)
}

// isBroken says whether a SQLite file cannot be written or read now, in
// SQLite's own words, which every driver hands on.
func isBroken(err error) bool {
	for _, words := range []string{
		"database or disk is full", "disk I/O error", "attempt to write a readonly database", "unable to open database file",
		"database disk image is malformed",
	} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// orOld wraps old around the error of a table or column that is not there.
func orOld(err, old error) error {
	if err == nil || old == nil {
		return err
	}
	switch code(err) {
	case "42P01", "42703", "3F000": // undefined table, column, schema
	case "":
		if s := err.Error(); !strings.Contains(s, "no such table") && !strings.Contains(s, "no such column") {
			return err
		}
	default:
		return err
	}
	return fmt.Errorf("%w: %w", old, err)
}

func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isBusy knows SQLITE_BUSY (5) and SQLITE_LOCKED (6) of any driver: by its
// code where the driver tells one, else by SQLite's own words.
func isBusy(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return e.Code()&0xff == 5 || e.Code()&0xff == 6
	}
	return strings.Contains(err.Error(), "database is locked") || strings.Contains(err.Error(), "database table is locked")
}
