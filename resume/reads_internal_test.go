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
	require.Equal(t, 19*time.Second, q.ask("a", at(61)), "behind the one that was refused")
	require.Zero(t, q.ask("a", at(70)))
	require.Equal(t, 30*time.Second, q.ask("a", at(80)), "what was refused does not count")
	require.Zero(t, q.ask("a", at(300)))
}

// What is refused comes again when it is told to. However much waits, each is
// asked for a few times, and not at every moment that one may be read.
func TestQuotaTellsEachItsOwnTime(t *testing.T) {
	t.Parallel()
	const most, many = 6, 600
	q := quota{most: most}
	now := time.Now()
	due := make([]time.Time, many) // of what waits; zero is read
	for i := range due {
		due[i] = now.Add(time.Duration(i) * time.Millisecond)
	}
	asked, inMinute := 0, map[int]int{}
	for left := many; left > 0; asked++ {
		next := -1
		for i, at := range due {
			if !at.IsZero() && (next < 0 || at.Before(due[next])) {
				next = i
			}
		}
		wait := q.ask("a", due[next])
		if wait == 0 {
			inMinute[int(due[next].Sub(now)/time.Minute)]++
			due[next], left = time.Time{}, left-1
			continue
		}
		require.Positive(t, wait)
		due[next] = due[next].Add(wait)
	}
	require.Less(t, asked, 3*many)
	require.Len(t, inMinute, many/most, "no minute is left out")
}
