package resumetest

import (
	"strings"
)

// scheduleRun lets the actors act at the same time, in the order that pick
// chooses.
func scheduleRun(r *rig, pick func(enabled []int, last int) int) (log []decision, deadlocks int, v *violation, err error) {
	w, err := begin(r)
	if err != nil {
		return nil, 0, nil, err
	}
	defer w.srv.Close()
	if err := w.setUp(); err != nil {
		return nil, 0, w.explain(&crasher{}), w.ignoreViolation(err)
	}
	s, err := newStage(w, pick)
	if err != nil {
		return nil, 0, nil, err
	}
	if err = s.play(); err == nil {
		err = w.finish()
	}
	if v = w.failed(); v != nil {
		v.Replay = w.replay("schedule", scheduleOf(s.log).String())
		v.Trace = append(s.trace, w.story()...)
	}
	return s.log, s.deadlocks, v, w.ignoreViolation(err)
}

// replay names one run: scenario, store, mode and what ran.
func (w *world) replay(mode, what string) string {
	return strings.Join([]string{w.rig.scenario.Name, w.rig.store.name(), mode, what}, "/")
}
