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
//     event, as long as its ID or a floor knows it (below). The handler itself
//     may be called more than once for an event, with other neighbours or alone;
//     only the commit counts.
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
// A floor is a stretch of an inbox's sequences, from the lowest forgotten to the
// highest. A sweep reads everything from the settled position on, so what lies
// between two events that it met has been handled: a later sweep, whichever and
// from wherever, skips what lies in the stretch, and decides by the ID about what
// lies outside. Only what sweeps met in their turn, above the attached and the
// settled position, is forgotten into a floor. What a person asked for
// ([events.Sweeper.SweepFrom]) keeps its ID for good, for such a sweep may begin
// in the middle and end anywhere; so does what the row of a stream that was lost
// had not forgotten yet. A row that is made again has floors of its own, beside
// the old ones. So neither a lost cursor nor history, nor an inbox that the
// credential comes to see, has anything handed over twice or never.
//
// Two things a floor cannot know. If a credential sees an inbox, no longer sees
// it, and sees it again, what came between lies within the stretch once IDs of
// both sides are forgotten: sweep from before it within Config.Retain. And a push
// has no sequence: one that a person has the provider repeat, more than
// Config.Retain after a sweep last met the event, is fresh and handled again.
//
// What it does not do: order events between the doors, undo what a handler did
// outside its transaction, or protect from a provider that names one event
// differently each time.
//
// Pushes that arrive during a commit share the next one (group commit), so
// throughput does not end at one commit an event; a lone push waits for nobody.
package dedupe
