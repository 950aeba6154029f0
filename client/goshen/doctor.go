package goshen

import (
	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events/doctor"
)

var _ doctor.Provider = (*Client)(nil)

// Clock is the provider's clock beside ours, by its newest answer. Goshen shows
// no deliveries, so there is no more for package doctor.
func (c *Client) Clock() client.Clock { return c.transport.Clock() }
