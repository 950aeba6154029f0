// Package goshentest is Goshen Email in one process: a stateful fake of an
// account, to test an agent against, in the manner of net/http/httptest.
//
//	srv := goshentest.NewServer(t, goshentest.Config{})
//	// point the client at srv.URL(), srv.Key(), srv.Inbox()
//	srv.OnSend(func(d goshentest.Send) {
//		srv.Inbound(goshentest.Mail{From: d.To[0], InReplyTo: d.MessageID, Text: "yes"})
//	})
//	// … run the agent …
//	srv.Check(t) // nothing undocumented, no key with two bodies
//
// [Start] is the form without a test, for commands and demonstrations.
//
// # What it does
//
// The server keeps inboxes, messages, threads, labels, idempotency keys,
// deliveries and an outbox of events, and answers the documented operations on
// messages and threads, and those that read inboxes. Its JSON is written field
// by field from the documents, so a wrong tag in a client fails a test here.
// Inboxes cannot be made through the API, and there are no attachments, no
// triage and no billing; those operations answer not_configured.
//
// Lists are newest first and paged by an offset, as the real ones: whoever
// takes a label away while following pages passes over messages, and that is a
// violation here. A message joins the thread of In-Reply-To, else of the newest
// known reference, in its inbox; never by its subject. A Message-ID that is
// known already is no new message and no event.
//
// A test plays the rest of the world: [Server.Inbound] delivers mail,
// [Server.Release] is the person who releases it from quarantine,
// [Server.DeliveryUpdate] is what becomes of a message, [Server.BounceAt] makes
// addresses bounce when they are written to, [Server.Webhook] registers a
// receiver. [Server.Sends] is the provider's own record of what left: count
// there.
//
// # Webhooks
//
// Events have no ID but the header svix-id: the message's own UUID, or
// "delivery:", that UUID, and the version. Anything but a 2xx within 10 seconds
// is tried again for ever, 10, 20, 40 seconds and so on up to an hour later,
// with the same body and a new timestamp. Redirects are not followed. Signatures
// are made by the reference library of Standard Webhooks. The real sender looks
// for due events once a minute; this one does at once.
//
// # When things go wrong
//
// [Server.Fault] makes requests fail: refused, cut before or after their
// effect, slow, answered with garbage, or a send of which nobody knows whether
// it left. [Server.FaultEvents] makes pushes come twice, late, out of order or
// never. [Server.OnRequest] is called at each point of a request and may do
// anything there, a crash included.
//
// # Time
//
// In real time webhooks are delivered by themselves, concurrently and in no
// promised order. With [Config.Manual] nothing happens unasked: time moves by
// [Server.Advance], which makes each retry at its own moment, and
// [Server.Drain] delivers what is due. With [Config.InMemory] there is no
// socket and the server runs inside testing/synctest.
package goshentest
