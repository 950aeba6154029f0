package doctor

import (
	"context"
	"time"

	"github.com/replywake/replywake/client"
)

// Provider is what a [Doctor] asks a provider's client. efa.Client and
// goshen.Client are one.
type Provider interface {
	// Clock is the provider's clock as its answers told it. It asks nobody.
	Clock() client.Clock
}

// Lister is a [Provider] that shows what became of its deliveries. efa.Client
// is one; Goshen Email has no such listing.
type Lister interface {
	Provider

	// Endpoints lists the webhook endpoints, each with its newest deliveries.
	Endpoints(ctx context.Context) ([]Endpoint, error)
}

// Endpoint is where a provider sends webhooks.
type Endpoint struct {
	ID            string     `json:"id"`
	Disabled      bool       `json:"disabled"`
	SecretVersion string     `json:"secret_version"` // in the provider's words
	Deliveries    []Delivery `json:"deliveries"`     // the newest, as many as the provider shows

	// What became of the events of those that the provider gave up on, and of
	// those it cancelled. The Doctor fills it.
	GivenUp  Tally `json:"given_up"`
	Canceled Tally `json:"canceled"`
}

// Delivery is one event on its way to an endpoint.
type Delivery struct {
	ID       string        `json:"id"`
	EventID  string        `json:"event_id"`
	State    DeliveryState `json:"state"`
	Attempts int           `json:"attempts"`
	Status   int           `json:"status"` // the last HTTP status; 0 if there was no answer
	Final    bool          `json:"final"`  // given up because of Status, without another try

	// At is when it was first tried, or is due if it was not; zero if the
	// provider does not say.
	At time.Time `json:"at,omitzero"`

	Event Fate `json:"event,omitempty"` // of a delivery given up or cancelled; the Doctor fills it
}

// DeliveryState is how a delivery stands.
type DeliveryState string

// The states of a delivery.
const (
	Unknown   DeliveryState = ""          // a word that is not known here
	Pending   DeliveryState = "pending"   // it will be tried
	Delivered DeliveryState = "delivered" // answered 2xx
	GivenUp   DeliveryState = "given_up"  // it will not be tried again
	Canceled  DeliveryState = "canceled"  // by a rotation, or because the endpoint was switched
)

// Fate is what became of an event that a delivery did not bring.
type Fate string

// The fates of an event.
const (
	BySweep Fate = "sweep"   // the cursor brought it
	ByPush  Fate = "push"    // a webhook brought it, no sweep has met it yet
	Waiting Fate = "waiting" // no sweep has come so far yet
	Missing Fate = "missing" // sweeps passed by without it
	Untold  Fate = "untold"  // too old to know, or the provider tells no time
)

// Tally counts events by their fate.
type Tally struct {
	Total   int `json:"total"`
	BySweep int `json:"by_sweep"`
	ByPush  int `json:"by_push"`
	Waiting int `json:"waiting"`
	Missing int `json:"missing"`
	Untold  int `json:"untold"`
}
