package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
)

func TestDemonstration(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := demonstrate(t.Context(), &out)
	require.NoError(t, err, out.String())
	for _, line := range []string{
		"attached  1 older message",
		"crash     3 messages came; the process died behind the last note, before the commit: 0 notes",
		"restart   the same 3 come again: 3 notes",
		"late      the cursor stands at 6 while 5 cannot be seen yet: 4 notes",
		"now it can, and the sweep has looked back: 5 notes",
		"expired   the process was away too long: 7 is gone, and reported; 8 is the oldest that remains: 6 notes",
		"6 messages to handle, 6 notes: 0 missing, 0 twice",
	} {
		require.Contains(t, out.String(), line)
	}
}

func TestFaultsOfTheAccountAreErrors(t *testing.T) {
	t.Parallel()
	err := receive(t.Context(), efa.Config{}, nil, events.SweeperConfig{Start: events.FromNow}, note)
	require.ErrorContains(t, err, "efa")
}
