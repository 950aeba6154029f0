// Package doctor looks at both doors of a stream together and says what is
// wrong: webhooks that no sweep meets, deliveries the provider gave up on or
// cancelled, a secret that is about to end, a clock that is off.
//
//	d, err := doctor.New(doctor.Config{
//		Inbox: inbox, Handler: webhook, Sweeper: sweeper, Provider: provider,
//		Inboxes: []string{"ibx_1"},
//	})
//	report := d.Report(ctx)
//	fmt.Print(report)                        // a terminal
//	json.NewEncoder(w).Encode(report)        // a page
//
// Build it once, beside the doors, and ask for a [Report] when a person wants
// one: it makes a few bounded reads of the store, and of the provider a request
// for its endpoints and one for each. A program that lacks a part leaves it
// out, and the report says so. So it does of a store or a provider that does
// not answer: a Report is always made.
//
// # What is promised
//
//   - Nothing is changed, neither here nor at the provider.
//   - A [Finding] has a [Code] that stays the same, and one sentence that says
//     what to do. No finding and no figure holds mail, an address of a stranger,
//     a secret or a key.
//   - What stands in the store is judged by the store, whichever process
//     received it and however often this one began anew. Counts of the push door
//     and its secrets are this process's own.
//   - There is no gap detector: numbers that are missing mean nothing, because a
//     key may see only some inboxes. Events without an inbox (tests) never count.
//
// # What it cannot know
//
// A provider's endpoint may be told of inboxes that the key does not see, and a
// listing does not say of which inbox a delivery is. An event that the cursor
// did not bring may be one of those.
package doctor
