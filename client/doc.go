// Package client holds what every e-mail provider shares: the shapes of a
// [Message], of mail to send ([Outgoing]) and of what became of it
// ([Outcome]), text that a stranger wrote ([Untrusted]), one [Error] type with
// a [Class] that says who can mend it, and the HTTP transport that the
// providers' packages use.
//
// Most users take a provider's package (client/efa, client/goshen) and meet
// these types in its answers.
//
// What is promised: a stranger's text prints as a length until it is asked for
// by name; an error holds the provider's code and status and never its
// message, an address or a body; no request is repeated unless repeating it
// cannot act twice.
package client
