package efa

import (
	"context"
	"net/http"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/events/doctor"
)

var _ doctor.Lister = (*Client)(nil)

// Clock is the provider's clock beside ours, by its newest answer.
func (c *Client) Clock() client.Clock { return c.transport.Clock() }

// maxEndpoints bounds the requests of one look.
const maxEndpoints = 10

// Endpoints lists the project's endpoints, at most 10, each with its newest
// deliveries, at most 25, for package doctor. It needs the scope webhooks:read.
func (c *Client) Endpoints(ctx context.Context) ([]doctor.Endpoint, error) {
	webhooks, err := c.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	var list []doctor.Endpoint
	for _, w := range webhooks[:min(len(webhooks), maxEndpoints)] {
		deliveries, err := c.Deliveries(ctx, w.ID)
		if err != nil {
			return nil, err
		}
		to := doctor.Endpoint{ID: w.ID, Disabled: w.Status == "disabled", SecretVersion: w.SecretVersion}
		for _, d := range deliveries {
			to.Deliveries = append(to.Deliveries, d.neutral())
		}
		list = append(list, to)
	}
	return list, nil
}

var deliveryStates = map[string]doctor.DeliveryState{
	"pending": doctor.Pending, "running": doctor.Pending, "succeeded": doctor.Delivered,
	"exhausted": doctor.GivenUp, "canceled": doctor.Canceled,
}

// neutral leaves out what the endpoint answered: it may quote anything.
func (d WebhookDelivery) neutral() doctor.Delivery {
	out := doctor.Delivery{
		ID: d.ID, EventID: d.EventID, State: deliveryStates[d.State], Attempts: len(d.Attempts), At: d.Next,
	}
	for _, a := range d.Attempts {
		if !a.At.IsZero() && (out.At.IsZero() || a.At.Before(out.At)) {
			out.At = a.At
		}
	}
	if len(d.Attempts) > 0 {
		out.Status = int(d.Attempts[len(d.Attempts)-1].Status)
	}
	out.Final = out.State == doctor.GivenUp && terminal(out.Status)
	return out
}

// terminal is the provider's rule: any other 4xx ends a delivery at once.
func terminal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status <= 499
}
