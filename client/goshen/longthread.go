package goshen

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events"
)

const maxPages = 1000 // of 100 messages; a list that goes on is going round

func isTooLarge(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == codeThreadTooLarge
}

// longThread goes through the whole inbox for one thread. It asks for no label,
// so that no change of labels moves what it pages over; mail that arrives
// meanwhile pushes messages to later pages, where they come a second time.
func (c *Client) longThread(ctx context.Context, inbox, thread string) ([]Message, error) {
	var list []Message
	seen := map[string]bool{}
	for token, tokens := "", map[string]bool{}; ; {
		page, err := c.List(ctx, inbox, Query{Token: token})
		if err != nil {
			return nil, err
		}
		for _, m := range page.Messages {
			if m.Thread == thread && !seen[m.ID] {
				seen[m.ID] = true
				list = append(list, m)
			}
		}
		if token = page.Next; token == "" {
			slices.Reverse(list)
			return list, nil
		}
		if tokens[token] || len(tokens) >= maxPages {
			return nil, goingRound()
		}
		tokens[token] = true
	}
}

func goingRound() error {
	return &client.Error{
		Op: opList, Class: client.ClassService,
		Cause: fmt.Errorf("%w: more is promised and no new page given", events.ErrNoProgress),
	}
}
