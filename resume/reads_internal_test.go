package resume

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuotaIsOfAnyMinute(t *testing.T) {
	t.Parallel()
	q := quota{most: 3}
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	for _, s := range []int{0, 10, 50} {
		require.Zero(t, q.ask("a", at(s)))
	}
	require.Equal(t, 5*time.Second, q.ask("a", at(55)), "until the oldest is a minute old")
	require.Zero(t, q.ask("b", at(55)), "each key for itself")
	require.Zero(t, q.ask("a", at(60)))
	require.Equal(t, 9*time.Second, q.ask("a", at(61)))
	require.Zero(t, q.ask("a", at(70)))
	require.Equal(t, 30*time.Second, q.ask("a", at(80)), "what was refused does not count")
	require.Zero(t, q.ask("a", at(300)))
}
