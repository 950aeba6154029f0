// Package sqldb runs the transactions of dedupe and resume on Postgres through
// pgx and on SQLite through database/sql.
//
// A statement is written once, in Postgres' words, with a few marks where the
// two databases differ ([Dialect.Render]); what holds on one store then holds
// on the other. It opens no connection and links no driver but pgx's.
//
// Who may import it: dedupe, resume and the packages below internal. Times are
// time.Time on the Go side and timestamptz on Postgres, microseconds on
// SQLite; the zero time is NULL in both directions.
package sqldb
