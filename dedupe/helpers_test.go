package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

func take(tb testing.TB, in *dedupe.Inbox, b events.Batch) events.Result {
	tb.Helper()
	res, err := in.Take(tb.Context(), b)
	require.NoError(tb, err)
	return res
}

func mustPush(tb testing.TB, in *dedupe.Inbox, ev events.Event) events.Result {
	tb.Helper()
	res, err := in.Push(tb.Context(), ev)
	require.NoError(tb, err)
	return res
}

var errPoison = errors.New("poison")

// failsOn is a handler that fails on some events.
func failsOn(ns ...int) handler {
	return func(_ context.Context, _ exec, fresh []events.Event) error {
		for _, n := range ns {
			if contains(fresh, n) {
				return fmt.Errorf("%w: %s", errPoison, secret)
			}
		}
		return nil
	}
}

// secret stands in errors that quote mail.
const secret = "a stranger's words"

func contains(fresh []events.Event, n int) bool {
	return slices.ContainsFunc(fresh, func(ev events.Event) bool { return ev.ID == event(n).ID })
}
