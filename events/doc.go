// Package events brings a provider's events in, each once, through two doors
// into one [Receiver].
//
// # Which door
//
// Both, if the program has a public address: the push door ([Handler]) for
// speed, the pull door ([Sweeper]) for completeness. Providers give up on
// deliveries, cancel them when a secret changes, and send them to whoever
// answers 2xx; the pull door finds what the push door missed. Without a public
// address the Sweeper alone is enough.
//
// The Receiver is where events are recognised, handed over and committed:
// dedupe.Inbox, or one of your own. What a provider calls things is in its
// package under client: a [Source] for the pull door and a [Profile] for the
// push door. To read a stream without a Receiver, range over [Pages].
//
// # What is promised
//
//   - A 2xx, or a cursor that moved, is never earlier than the commit of the
//     event's work. A crash at any point means the event comes again.
//   - The cursor moves only in the commit of the rows it stands for, only
//     upward, and never on an empty page.
//   - A sequence that becomes visible late, up to SweeperConfig.LookBack after
//     a higher one, is found however long the process was away.
//   - Positions that expired are reported with what is gone ([Loss]); the sweep
//     goes on with what remains.
//   - A source that does not move on ends in a [NoProgressError], never in a loop.
//   - No sweep hands old mail over: [FromNow] marks history, which only
//     [Sweeper.SweepFrom] brings. A webhook has no number to tell by: one that
//     the provider repeats is taken, whenever its event happened.
//
// # What is not
//
// The push door carries no order, and neither door does between the two: a
// handler must not need it. Missing sequence numbers mean nothing, since a
// credential may see only some inboxes; they are not looked for. An event's
// content is untrusted whoever signed it.
package events
