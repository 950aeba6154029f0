package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/replywake/replywake/client"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]client.Error{
		"send: 409 idempotency_conflict": {Op: "send", Status: 409, Code: "idempotency_conflict", Cause: client.ErrConflict},
		"send: 500":                      {Op: "send", Status: 500},
		"send: 202 not an answer":        {Op: "send", Status: 202, Cause: client.ErrBadAnswer},
		"send: no answer":                {Op: "send", Cause: client.ErrUnavailable},
		"send":                           {Op: "send"},
		"send: a_code":                   {Op: "send", Code: "a_code"},
	} {
		assert.Equal(t, want, e.Error())
	}
}

func TestClassText(t *testing.T) {
	t.Parallel()
	for c, want := range map[client.Class]string{
		client.ClassService: "service", client.ClassRequest: "request", client.ClassCredential: "credential",
		client.ClassQuota: "quota", -1: "class(-1)", 4: "class(4)",
	} {
		assert.Equal(t, want, c.String())
	}
}

func TestQuestionsSeeThroughWraps(t *testing.T) {
	t.Parallel()
	wrap := func(e client.Error) error { return errors.Join(io.EOF, fmt.Errorf("outer: %w", &e)) }
	quota := wrap(client.Error{Class: client.ClassQuota, RetryAfter: time.Minute})
	assert.Equal(t, client.ClassQuota, client.ClassOf(quota))
	assert.Equal(t, time.Minute, client.RetryAfter(quota))
	assert.True(t, client.IsRetryable(quota))
	assert.True(t, client.IsRetryable(wrap(client.Error{Class: client.ClassService})))
	assert.True(t, client.IsRetryable(fmt.Errorf("x: %w", &net.DNSError{})))
	assert.False(t, client.IsRetryable(wrap(client.Error{Class: client.ClassRequest})))
	assert.False(t, client.IsRetryable(wrap(client.Error{Class: client.ClassCredential})))
	assert.False(t, client.IsRetryable(wrap(client.Error{Cause: context.Canceled})))
	assert.False(t, client.IsRetryable(io.EOF))
	assert.False(t, client.IsRetryable(nil))
	assert.Equal(t, client.ClassService, client.ClassOf(io.EOF))
	assert.Zero(t, client.RetryAfter(io.EOF))
}

func TestDeliveryFailed(t *testing.T) {
	t.Parallel()
	failures := []client.Delivery{client.DeliveryBounced, client.DeliveryFailed, client.DeliveryRejected, client.DeliveryComplained}
	for _, d := range failures {
		assert.True(t, d.Failed(), d)
	}
	for _, d := range []client.Delivery{"", "new", client.DeliveryQueued, client.DeliveryAccepted, client.DeliveryDelivered, client.DeliveryDeferred} {
		assert.False(t, d.Failed(), d)
	}
}
