// Package resume runs workflows that send mail, stop, and wake when the answer
// arrives: exactly once, days later, on any worker, whatever crashed meanwhile.
//
// A workflow is a row, not a process. Your [Step] is called with what arrived
// and answers with what comes next: send and wait, wait, finish, or ask a
// person. Its state, the mail it sends and the inputs it took commit together;
// nothing runs while it waits.
//
// # What to use
//
// Make an engine with [NewPostgres] or [NewSQLite], give its Route to a
// dedupe.Inbox as the handler and its Wake as AfterCommit, start workflows with
// Start in a transaction of yours, and keep Run going in at least one process:
//
//	engine, err := resume.NewPostgres(pool, mail, step, resume.Config{Inboxes: inboxes})
//	inbox, err := dedupe.NewPostgres(pool, dedupe.Config{Stream: mail.Stream(), AfterCommit: engine.Wake}, engine.Route)
//	err = engine.Migrate(ctx)  // dedupe's tables too; SQLite: NewSQLite has done it
//	sweeper, err := events.NewSweeper(mail.Source(), inbox, events.SweeperConfig{Start: events.FromNow})
//	go inbox.Run(ctx)
//	go sweeper.Run(ctx)
//	<-sweeper.Attached()       // or a reply to what is sent may count as history
//	go engine.Run(ctx)
//	id, err := engine.Start(ctx, nil, resume.Start{…})
//
// The package's example does so against a fake provider, and examples/resume is
// a whole service.
//
// # What is promised
//
//   - Every event of the engine's inboxes is in exactly one place: an input of
//     one workflow, the queue for people, or settled with a reason.
//   - An input is consumed by at most one committed run, and only after its
//     content was loaded, or a verdict on it was stored.
//   - A planned send leaves at most once: its bytes and its Idempotency-Key
//     are stored before the first attempt and never change. An outcome that
//     cannot be known any more goes to a person; it is not sent again.
//   - No workflow sleeps on an answer it already has: every way into waiting
//     looks at the row's own counters, under its lock.
//   - What cannot be placed with certainty goes to a person, never to a guess.
//
// # What it does not do
//
// A step may run more than once for one commit (a crash, a lost lease): only
// its committed result counts, so effects outside belong into [Run.InPostgres],
// [Run.InSQL] or an idempotent call. Whether a human wrote a mail cannot be
// known: From is all there is, and it can be forged. See [Proof].
package resume
