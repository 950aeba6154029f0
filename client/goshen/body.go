package goshen

import (
	"context"
	"errors"

	"github.com/replywake/replywake/client"
)

// Body reads a message's text. While the message is quarantined it is not
// available. HTML stays empty: Goshen makes a text of it where there is no
// other, and does not say that it makes it safe; [Client.Message] has it.
func (c *Client) Body(ctx context.Context, inbox string, m client.Message) (client.Body, error) {
	got, err := c.message(ctx, inbox, m.ID, nil)
	if isQuarantined(err) {
		return client.Body{}, nil
	}
	if err != nil {
		return client.Body{}, err
	}
	if got.Quarantined() {
		return client.Body{}, nil
	}
	return client.Body{Text: got.Text, Available: true}, nil
}

func isQuarantined(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == codeQuarantined
}
