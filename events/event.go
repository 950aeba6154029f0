package events

import (
	"time"

	"github.com/replywake/replywake/client"
)

// Kind says what an event is about, whatever a provider calls it.
type Kind string

// The kinds of events.
const (
	KindUnknown   Kind = "unknown"   // a type this version does not know: kept, acknowledged
	KindReceived  Kind = "received"  // a message came in
	KindQueued    Kind = "queued"    // a message of ours was taken for sending
	KindDelivery  Kind = "delivery"  // a delivery's state, see Event.Delivery
	KindBounce    Kind = "bounce"    // a message of ours came back
	KindComplaint Kind = "complaint" // a recipient marked a message of ours as spam
	KindApproval  Kind = "approval"  // a person decided on a held message, see Event.Decision
	KindTest      Kind = "test"      // a test of the webhook
)

// Decision is what a person decided on a held message.
type Decision string

// The decisions on a held message.
const (
	DecisionNone      Decision = ""
	DecisionRequested Decision = "requested"
	DecisionApproved  Decision = "approved"
	DecisionRejected  Decision = "rejected"
)

// Event is one thing a provider reports, in the shape both doors give it.
// Fields that a door or a provider does not carry are zero.
type Event struct {
	Stream string // the stream's name; the Receiver fills it
	ID     string // the same for one event at both doors
	Kind   Kind
	Type   string // the provider's own name of the type

	Inbox    string
	Thread   string
	Message  string
	Approval string

	Decision Decision        // of an approval
	Delivery client.Delivery // of a delivery
	Version  int64           // orders snapshots of one message's delivery; 0 where there is none

	Sequence   Cursor    // 0 at the push door
	OccurredAt time.Time // zero at the push door of Email for Agents

	Data client.Raw // the event as it came: the body, or the row of a page
}

// Stream names one provider project as one credential sees it.
type Stream struct {
	// Name is the key of everything stored: cursor, lease, IDs, mail.
	Name string

	// Origin (base URL and project) and Environment (live, test) stand beside
	// the cursor. A known name with another of these is refused.
	Origin      string
	Environment string

	// Credential is a fingerprint of the key. Another key of the same project
	// goes on at the same cursor and raises a finding.
	Credential string
}
