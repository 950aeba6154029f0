// Package efa is Email for Agents: how its events are read at both doors, how
// mail is sent and read, and how webhooks are looked after.
//
// [New] makes a [Client] for one project and one key. A sweeper takes
// [Client.Source], a push handler takes [Profile], package resume takes the
// client itself, which has its Mail methods: Seal, Send, Messages, Body and
// Stream.
//
// What is promised: a key prints under no verb; no error holds an address, a
// body or the provider's message; nothing but a GET is ever repeated here, and
// a send is made under the caller's Idempotency-Key, so that the caller may
// repeat it; an answer that does not have the documented shape is an error and
// never "nothing new".
//
// The provider's documents leave some names and shapes open. Where a comment
// says "not documented", the plainest JSON was chosen, and answers are read
// with tolerance: what is missing or of another type is left empty, what is
// unknown is skipped. An API key cannot create a webhook endpoint (that takes a
// person with the role of owner or admin), so there is no call for it here.
package efa
