package resume

import (
	"context"
	"iter"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

// Mail is how an engine sends and reads. client/efa and client/goshen have
// one. It must be safe for concurrent use.
type Mail interface {
	// Stream names the project; it is the stream whose events Route takes.
	Stream() events.Stream

	// Seal checks mail and fixes its bytes. Its errors are faults of the mail.
	Seal(inbox string, out client.Outgoing) (client.Sealed, error)

	// Send sends, or repeats the answer to an earlier send with the same key.
	Send(ctx context.Context, key string, s client.Sealed) (client.Outcome, error)

	// Messages lists a thread in the provider's order, without bodies.
	Messages(ctx context.Context, inbox, thread string) iter.Seq2[client.Message, error]

	// Body reads a message's content.
	Body(ctx context.Context, inbox string, m client.Message) (client.Body, error)
}
