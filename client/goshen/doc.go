// Package goshen is Goshen Email: how its events are read at both doors, how
// mail is sent and read, and how labels are changed.
//
// [New] makes a [Client] for one key and the inboxes it looks after. A sweeper
// takes [Client.Source], a push handler takes [Profile], package resume takes
// the client itself, which has its Mail methods: Seal, Send, Messages, Body and
// Stream.
//
// # Which door
//
// Webhooks exist only for inboxes that a platform provisioned; every key can
// poll. Goshen repeats a push for ever, so for mail that comes either door alone
// is enough. Only the push door reports deliveries and bounces.
//
// The pull door has no cursor: it asks for what is received and unread, and
// takes the label unread away after the commit ([Source.Settle]). So unread
// must be left to it, and two programs must not drain one inbox. A message that
// was pushed stays unread until the next sweep, which finds it to be known.
//
// # What is promised
//
// An event has one ID at both doors, though Goshen names events in a header
// only: it is built from what is signed (see [Profile]). A key prints under no
// verb; no error holds an address, a Message-ID, a body or the provider's
// message, also where these stand in the request's path. Nothing but a GET is
// ever repeated here; a send is made under the caller's Idempotency-Key, so
// that the caller may repeat it. Quarantined mail is no event, and is not in
// [Client.Messages] and [Client.Body]; where else it can be seen, it says so
// ([Message.Quarantined]).
//
// # What is not
//
// Goshen shows no mail headers, so an automatic answer cannot be told from a
// person's. Neither door has an order to rely on: a backlog of over 100
// messages comes newest hundred first.
package goshen
