package resumetest

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// follower picks along a schedule.
func follower(s schedule) (pick func(enabled []int, last int) int) {
	n := 0
	return func(enabled []int, last int) int {
		n++
		if n <= len(s) {
			if i := strings.IndexByte(letters, s[n-1]); slices.Contains(enabled, i) {
				return i
			}
		}
		return stay(enabled, last)
	}
}

// stay goes on with who went last, else with the first that can.
func stay(enabled []int, last int) int {
	if slices.Contains(enabled, last) {
		return last
	}
	return enabled[0]
}

// wanderer picks by chance.
func wanderer(rng *rand.Rand) func(enabled []int, last int) int {
	return func(enabled []int, last int) int {
		if rng.IntN(3) > 0 {
			return stay(enabled, last)
		}
		return enabled[rng.IntN(len(enabled))]
	}
}

// scheduleOf is what was decided.
func scheduleOf(log []decision) schedule {
	b := make([]byte, len(log))
	for i, d := range log {
		b[i] = letters[d.chosen]
	}
	return schedule(b)
}

// branch is a schedule to run, and how many of its choices are preemptions:
// somebody else goes on though who went last could.
type branch struct {
	prefix      schedule
	preemptions int
}

// branches are the schedules that leave a run's path behind its prefix, with
// at most bound preemptions.
func branches(log []decision, from branch, bound int) []branch {
	var out []branch
	path := scheduleOf(log)
	for i := len(from.prefix); i < len(log); i++ {
		cost := from.preemptions
		if !log[i].forced {
			cost++
		}
		if cost > bound {
			continue
		}
		for _, other := range log[i].enabled {
			if other != log[i].chosen {
				out = append(out, branch{path[:i] + schedule(letters[other:other+1]), cost})
			}
		}
	}
	return out
}
