// Package resumetest tests step functions, and the engine they run on.
//
// # One step
//
// [Run] calls a step once, with inputs and state of your choice, and returns
// what it decided. It makes the database it needs:
//
//	d := resumetest.Run(t, step, resumetest.Call{Inputs: []resume.Input{resumetest.Reply("100 EUR")}})
//	require.True(t, d.Done)
//
// # A whole life
//
// [Explore] takes a [Scenario]: your step function, and actors that do what the
// world does to it (a reply is pushed, a worker runs, a sender sends, a person
// binds, time passes). It runs the real engine, a real dedupe.Inbox and an
// efatest provider with
//
//   - a crash at every boundary: before and after each statement of the engine,
//     each commit, each call of the provider (for a send also between its effect
//     and its answer) and of the step. Another process then takes over;
//   - every order of the actors in which one that could go on is made to wait at
//     most Options.Preemptions times, and some random ones beyond, in half of
//     which a process ends on the way too. The report says up to how many times
//     every order was run. On Postgres transactions are really held open, and
//     who waits for a lock is asked of the lock manager; on SQLite, which has
//     one writer, actors take turns between transactions.
//
// After every commit and at rest it checks what package resume promises
// ([Invariants]) and at the end your own Scenario.Check. What breaks is printed
// with the order of events and a word for RESUMETEST_REPLAY that runs it again.
// Time passes with [World.Jump]: a deadline fires at a Work behind a Sweep behind
// a Jump. Mail bounces with the provider's DeliveryUpdate. A scenario takes
// seconds, one with many actors a minute.
//
// An [Observer] checks the same in tests of your own that run an engine.
//
//	resumetest.Explore(t, resumetest.Scenario{
//		Name: "correction", Step: step,
//		Setup: func(w *resumetest.World) error {
//			if err := w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com", First: ask}); err != nil {
//				return err
//			}
//			return errors.Join(w.Settle(), w.ReplyAndPush("w1", "100 EUR"))
//		},
//		Actors: []resumetest.Actor{
//			{Name: "worker", Do: (*resumetest.World).Work},
//			{Name: "correction", Do: func(w *resumetest.World) error { return w.ReplyAndPush("w1", "90 EUR") }},
//		},
//	}, resumetest.Options{Postgres: os.Getenv("TEST_DATABASE_URL")})
//
// # What it does not do
//
// It explores the order of statements and calls, not of memory accesses: run
// your tests with -race for those. It links the SQLite driver
// modernc.org/sqlite under the name "sqlite". What a Scenario.Step keeps outside
// its saved state it shares with other runs, which go on at once, and no crash
// takes it away: see Scenario.NewStep.
package resumetest
