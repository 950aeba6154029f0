package client

import "time"

// Message is one message as a provider's listing shows it, without its body.
type Message struct {
	ID     string // the provider's
	Inbox  string
	Thread string

	Outbound bool      // sent from the inbox, not received
	From     Untrusted // a bare address
	To       []Untrusted
	Subject  Untrusted
	At       time.Time // when the provider says it was sent or received; zero where it does not say

	// Delivery is the state of an outbound message where the listing says it;
	// empty is unknown.
	Delivery Delivery
}

// Body is a message's content.
type Body struct {
	Text Untrusted
	HTML Untrusted // sanitised by the provider; empty where there is none

	// Available is false while the provider has no content to show. A message
	// without text that is available is a message that was read.
	Available bool
}

// Delivery is how far a sent message came, in the words providers share.
type Delivery string

// The states of a delivery. The last four are failures.
const (
	DeliveryUnknown    Delivery = ""
	DeliveryQueued     Delivery = "queued"
	DeliveryAccepted   Delivery = "accepted"
	DeliveryDelivered  Delivery = "delivered"
	DeliveryDeferred   Delivery = "deferred"
	DeliveryBounced    Delivery = "bounced"
	DeliveryFailed     Delivery = "failed"
	DeliveryRejected   Delivery = "rejected"
	DeliveryComplained Delivery = "complained"
)

// Failed says whether the message did not reach its recipient, or was refused
// by them.
func (d Delivery) Failed() bool {
	switch d {
	case DeliveryBounced, DeliveryFailed, DeliveryRejected, DeliveryComplained:
		return true
	}
	return false
}

// Outgoing is mail to send.
type Outgoing struct {
	To      []string `json:"to"` // bare addresses, at least one
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html,omitempty"`

	// ReplyTo is the ID of the message this one answers; the reply joins its
	// thread. Empty starts a thread.
	ReplyTo string `json:"reply_to,omitempty"`
}

// Sealed is mail whose bytes no longer change: what a send row keeps, so that
// a repeated request under one Idempotency-Key is the same to the byte.
type Sealed struct {
	Inbox   string
	ReplyTo string // the message it answers, empty for none
	Body    []byte // the request's body, exactly
}

// Outcome is the provider's answer to a send.
type Outcome struct {
	// Held: a person must approve it first. Nothing has left and there is no
	// thread yet; Approval and Draft name what is held.
	Held     bool
	Approval string
	Draft    string

	Message string // the sent message's ID; empty where the answer lacks it
	Thread  string // the thread it stands in
}
