// Package dedupe runs a handler once per event, whatever the doors deliver
// twice and whatever crashes in between.
//
// An [Inbox] is the [events.Receiver] behind both doors. It claims an event's
// ID, calls the handler with a transaction of the caller's own type, moves the
// cursor, and commits: ID, effect and position stand or fall together.
//
//	inbox, err := dedupe.NewPostgres(pool, dedupe.Config{Stream: stream},
//		func(ctx context.Context, tx pgx.Tx, fresh []events.Event) error {
//			…                                  // write with tx, and only with tx
//		})
//	err = inbox.Migrate(ctx)                   // SQLite: NewSQLite has done it
//	go inbox.Run(ctx)                          // retries, and forgets what is old
//
// What it promises:
//
//   - A handler's effect that lies in the transaction exists exactly once per
//     event. The handler itself may be called more than once for an event, with
//     other neighbours or alone; only the commit counts.
//   - There is no "mark first, work later": a handler that fails leaves an
//     event unseen, or parked where it is tried again, never lost.
//   - One event that always fails delays and fails no other. It is parked with
//     its content; [Inbox.Run] tries it again until it works or, after
//     Config.MaxAttempts and Config.GiveUpAfter, a person decides
//     ([Inbox.Parked], [Inbox.Retry], [Inbox.Discard]).
//   - A lost connection, a deadlock, a full disk or a shutdown park nothing: the
//     door answers that it cannot take the event now, and it comes again.
//   - IDs are not kept for ever. What a sweep may meet again is remembered by a
//     floor per inbox; see [Inbox.Maintain] for what is forgotten when.
//
// What it does not do: order events between the doors, undo what a handler did
// outside its transaction, or protect from a provider that names one event
// differently each time.
//
// Pushes that arrive during a commit share the next one (group commit), so
// throughput does not end at one commit an event; a lone push waits for nobody.
package dedupe
