package main

import (
	"context"
	"database/sql"
	"fmt"

	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // a driver without cgo; dedupe takes any

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// handler is what happens with events, in the transaction that records them as
// seen.
type handler func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error

// receive has every event from now on handled once, until ctx ends. This is
// all there is to embed: an inbox that knows what was handled, a sweeper that
// reads the provider's cursor into it, and their two loops.
//
//nolint:contextcheck // NewSQLite asks nobody
func receive(ctx context.Context, account efa.Config, db *sql.DB, sweep events.SweeperConfig, handle handler) error {
	provider, err := efa.New(account)
	if err != nil {
		return err
	}
	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: provider.Stream(), Logger: sweep.Logger}, handle)
	if err != nil {
		return err
	}
	sweeper, err := events.NewSweeper(provider.Source(), inbox, sweep)
	if err != nil {
		return err
	}
	loops, ctx := errgroup.WithContext(ctx)
	loops.Go(func() error { return inbox.Run(ctx) })
	loops.Go(func() error { return sweeper.Run(ctx) })
	return loops.Wait()
}

// open opens the agent's database, which holds its own table too.
func open(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)") // for what we write ourselves
	if err != nil {
		return nil, err
	}
	// No unique key: what comes twice would show.
	_, err = db.ExecContext(ctx, "create table if not exists notes (event text not null, inbox text not null, message text not null)")
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// note is the agent's work: a note of each message. It writes with tx alone,
// so the note exists if and only if the event counts as handled.
func note(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
	for _, ev := range fresh {
		if ev.Kind != events.KindReceived {
			continue
		}
		if _, err := tx.ExecContext(ctx, "insert into notes values (?, ?, ?)", ev.ID, ev.Inbox, ev.Message); err != nil {
			return err
		}
	}
	return nil
}
