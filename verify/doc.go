// Package verify proves that a webhook delivery was sent by who holds the
// signing secret: raw bytes and headers in, a proof or an error out. It speaks
// Standard Webhooks, which Svix, Goshen Email and Email for Agents send, and
// uses the standard library only.
//
// # What to use
//
// In an HTTP service, [Verifier.Middleware] around the handler that exists
// already:
//
//	v, err := verify.New(verify.Config{
//		Secrets: []verify.Secret{verify.RawSecret(os.Getenv("WEBHOOK_SECRET"))},
//	})
//	http.Handle("POST /hooks", v.Middleware(handler))
//
// In a handler that must decide for itself, [Verifier.Read]. Where headers and
// body come from elsewhere (a queue, a function gateway), [Verifier.Verify].
// There is one way to be genuine: a nil error.
//
// # Which secret is mine?
//
// The encoding cannot be seen from the text, so it is said: [RawSecret] for
// Email for Agents, whose 32 hexadecimal digits are themselves the key;
// [Base64Secret] for Goshen Email, Svix and other Standard Webhooks senders,
// usually with the prefix "whsec_". [New] refuses what cannot be right and
// says why.
//
// # What is promised
//
//   - The signature covers the bytes as they arrived and the header texts as
//     they arrived. Nothing is parsed, inflated or written again before the MAC,
//     and there is no second attempt with another form.
//   - The headers are webhook-* or svix-*, whichever family is complete, under
//     names of any case. Two IDs or timestamps that differ are refused, and so
//     are two complete families that do.
//   - A timestamp is accepted within Config.Tolerance of the clock, before or
//     after, both edges included. It has one spelling, and so has an ID, so an
//     accepted delivery cannot be sent again under other header texts.
//   - All lines of the signature header count, as one list of pairs. Versions
//     other than v1 are skipped. MACs are compared in constant time.
//   - Limits hold before work is done: 256 bytes of ID, 4 KiB and 32 v1
//     signatures, Config.MaxBody and Config.ReadTimeout for the body, which is
//     not touched before the headers are good. No allocation and no error text
//     grows with what a stranger sends.
//   - Several secrets verify at the same time, each to its own end
//     ([Secret.Until]), and [Verifier.SetSecrets] changes them while requests
//     are served. Without a secret nothing verifies.
//   - Whoever is refused learns one status and no reason ([Verifier.Status]); the
//     error says the reason to the caller. No error, log record, or printed
//     value of this package holds a key or a MAC.
//
// # What it does not do
//
// It keeps no memory: a genuine delivery that is sent twice within the
// tolerance verifies twice, and senders do send twice. Recognise duplicates by
// [Delivery].ID, after verifying and together with the effect, as package
// dedupe does. It does not look into the body, so a genuine delivery that is
// not the JSON you expect is your error, to be told apart from a forged one.
// It has no asymmetric signatures (v1a), which are skipped like any other
// version that is not v1.
package verify
