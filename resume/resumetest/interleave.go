package resumetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// ending is a process that ends within a schedule: that of an actor, at its
// n-th boundary. The zero value ends none.
type ending struct{ actor, at int }

// endingBy is an ending at one of the boundaries that the actors passed in a run
// without one, or none as often.
func endingBy(rng *rand.Rand, passed []int) ending {
	c := ending{actor: rng.IntN(len(passed))}
	if n := passed[c.actor]; n > 0 && rng.IntN(2) > 0 {
		c.at = 1 + rng.IntN(n)
	}
	return c
}

// String is a schedule's suffix, such as !b7.
func (c ending) String() string {
	if c.at == 0 {
		return ""
	}
	return "!" + letters[c.actor:c.actor+1] + strconv.Itoa(c.at)
}

// parseRun reads a schedule, and an ending if it has one.
func parseRun(text string) (s schedule, c ending, err error) {
	text, suffix, ends := strings.Cut(text, "!")
	if s, err = parseSchedule(text); err != nil || !ends {
		return s, c, err
	}
	if c.at, err = strconv.Atoi(suffix[min(1, len(suffix)):]); err != nil || c.at < 1 || !strings.Contains(letters, suffix[:1]) {
		return s, c, fmt.Errorf("ending %q: want an actor and a boundary, like b7", suffix)
	}
	c.actor = strings.Index(letters, suffix[:1])
	return s, c, nil
}

// played is what came of a run of a schedule.
type played struct {
	log       []decision
	passed    []int // boundaries, by actor
	crashed   bool
	deadlocks int
}

// scheduleRun lets the actors act at the same time, in the order that pick
// chooses. Where one of their processes ends, another takes over once the
// others are done.
func scheduleRun(r *rig, c ending, pick func(enabled []int, last int) int) (p played, v *violation, err error) {
	w, err := begin(r)
	if err != nil {
		return p, nil, err
	}
	defer w.srv.Close()
	if err := w.setUp(); err != nil {
		return p, w.explain(&crasher{}), w.outcome(err)
	}
	s, err := newStage(w, c, pick)
	if err != nil {
		return p, nil, err
	}
	if err = s.play(); err == nil {
		err = s.takeOver()
	}
	if err == nil {
		err = w.finish()
	}
	if v = w.failed(); v != nil {
		v.Replay = w.replay("schedule", scheduleOf(s.log).String()+c.String())
		v.Trace = append(s.trace, w.story()...)
	}
	p = played{log: s.log, deadlocks: s.deadlocks}
	for _, actor := range s.players {
		p.passed = append(p.passed, actor.passed)
		p.crashed = p.crashed || actor.crashed
	}
	return p, v, w.outcome(err)
}

// takeOver lets another process do what the one that ended has left.
func (s *stage) takeOver() error {
	for _, p := range s.players {
		if !p.crashed {
			continue
		}
		if err := s.w.settle(); err != nil {
			return err
		}
		return s.w.again(p.actor)
	}
	return nil
}

// replay names one run: scenario, store, mode and what ran.
func (w *world) replay(mode, what string) string {
	return strings.Join([]string{w.rig.scenario.Name, w.rig.store.name(), mode, what}, "/")
}
