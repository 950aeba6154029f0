// Package efatest is Email for Agents in one process: a stateful fake of a
// whole project, to test an agent against, in the manner of net/http/httptest.
//
//	srv := efatest.NewServer(t, efatest.Config{})
//	// point the client at srv.URL(), srv.Project(), srv.Key()
//	srv.OnSend(func(d efatest.Send) {
//		srv.Inbound(efatest.Mail{ReplyTo: d.MessageID, Text: "yes"})
//	})
//	// … run the agent …
//	srv.Check(t) // nothing undocumented, no key with two bodies
//
// [Start] is the form without a test, for commands and demonstrations.
//
// # What it does
//
// The server keeps inboxes, threads, messages, idempotency keys, approvals,
// events and webhooks, and answers the documented endpoints and no other. A
// request that no document names is answered 404 and is a violation. Its JSON
// is written field by field from the documents, so a wrong tag in a client
// fails a test here.
//
// A test plays the rest of the world: [Server.Inbound] delivers mail,
// [Server.HoldSends] with [Server.Approve] and [Server.Reject] is the person
// who approves, [Server.DeliveryUpdate] is what becomes of a message,
// [Server.Webhook] registers a receiver, [Server.Rotate] changes its secret,
// [Server.Expire] is retention. [Server.Sends] is the provider's own record of
// what left: count there.
//
// # When things go wrong
//
// [Server.Fault] makes requests fail: refused, cut before or after their
// effect, slow, or answered with garbage. [Server.FaultEvents] makes events
// fail on their way: pushed twice, late, out of order or never, and visible to
// the cursor behind higher sequences. [Server.OnRequest] is called at each
// point of a request and may do anything there, a crash included. What is left
// to chance follows from [Config.Seed].
//
// # Time
//
// In real time webhooks are delivered by themselves, concurrently and in no
// promised order. With [Config.Manual] nothing happens unasked: time moves by
// [Server.Advance], which makes each retry at its own moment, and
// [Server.Drain] delivers what is due. With [Config.InMemory] there is no
// socket and the server runs inside testing/synctest.
//
// # Where the documents are silent
//
// The server chooses, and a client should not depend on it: an unknown
// credential is 401 unauthenticated; version_conflict and idempotency_expired
// are 409; a key's payload includes its inbox; a field of a send that no
// document names is refused; every message that leaves emits message.queued
// and message.accepted; an event without an inbox (webhook.test) is not shown
// to a key restricted to inboxes; a thread's listing shows a status only once
// the test has set one; its cursor is opaque and must be escaped; html is null
// where there is none. It never limits the rate of anything but webhook tests.
package efatest
