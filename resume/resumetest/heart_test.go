package resumetest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// A process that is cut off loses its lease by the clock, another takes the
// workflow and dies, and then the first one's heart beats again: that must not
// keep the second one's lease.
func TestHeartbeatAgainstNextOwner(t *testing.T) {
	t.Parallel()
	stuck := &stuckRun{}
	o := bounded(t)
	o.Stride, o.Random = -1, -1
	exploreWithin(t, scenario{
		Name: "heartbeat-against-next-owner", Config: resume.Config{Lease: 400 * time.Millisecond, Drain: time.Millisecond, Poll: time.Hour, Workers: 1},
		Step:   stuck.step,
		Setup:  start(resume.Start{ID: "w1", Counterparty: supplier}),
		Actors: []actor{{"cut off", stuck.run}, {"next", next}},
		Check:  status("w1", resume.StatusDone),
	}, o)
}

// stuckRun is a run that never ends by itself, in an engine that runs.
type stuckRun struct{}

type stuckKey struct{}

// step is done, but in the process that is stuck.
func (stuckRun) step(ctx context.Context, _ *resume.Run) (resume.Next, error) {
	if began, ok := ctx.Value(stuckKey{}).(chan struct{}); ok {
		close(began)
		<-ctx.Done()
		return resume.Next{}, context.Cause(ctx)
	}
	return resume.Done(), nil
}

var errCutOff = errors.New("no route to the database")

// run claims, is cut off, beats once more and dies.
func (stuckRun) run(w *world) error {
	began, beat := make(chan struct{}), make(chan struct{})
	hook := sqldb.HookOf(w.Context())
	line := &line{hook: hook, beat: beat}
	ctx, die := context.WithCancel(context.WithValue(sqldb.WithHook(w.Context(), line.at), stuckKey{}, began))
	defer die()
	ended := make(chan error, 1)
	line.open("claim")
	go func() { ended <- w.Engine().Run(ctx) }()
	select {
	case <-began:
	case <-time.After(10 * time.Second):
		return errors.New("nothing was claimed")
	}
	line.open("")
	err := hook("clock: cut off")
	if err == nil {
		line.open("beat")
		select {
		case <-beat:
		case <-ended: // another has the lease
			ended <- nil
		case <-time.After(10 * time.Second):
			err = errors.New("the heart does not beat")
		}
		line.open("")
	}
	die()
	return errors.Join(err, <-ended)
}

// line is a connection on which one thing at a time comes through.
type line struct {
	hook sqldb.Hook
	mu   sync.Mutex
	what string
	beat chan struct{}
}

func (l *line) open(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = what
}

// at lets a claim and what a run reads through, or a heartbeat; nothing stops
// in between.
func (l *line) at(point string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch beats := strings.Contains(point, "held_gen"); {
	case l.what == "claim" && !beats && !elsewhere(point), l.what == "beat" && (beats || bounds(point)):
	default:
		return errCutOff
	}
	if point != "after commit" {
		return nil
	}
	err := l.hook(point)
	if l.what == "beat" {
		l.what = ""
		close(l.beat)
	}
	return err
}

func bounds(point string) bool {
	return point == "begin" || point == "before commit" || point == "after commit"
}

// elsewhere are the other parts of a running engine.
func elsewhere(point string) bool {
	point = strings.Join(strings.Fields(point), " ")
	other := strings.Contains(point, "sends") || strings.Contains(point, "unplaced") || strings.Contains(point, "delete from")
	return other || strings.Contains(point, "set data = null") || strings.Contains(point, "kept_from")
}

// next takes over from who is cut off, and dies.
func next(w *world) error {
	if row, err := w.Engine().Workflow(w.Context(), "w1"); err != nil || row.Status != resume.StatusRunning {
		return err
	}
	return do(jump(time.Minute), claimAndDies)(w)
}

// claimAndDies is a worker that ends once it has claimed.
func claimAndDies(w *world) error {
	hook, died := sqldb.HookOf(w.Context()), false
	_, err := w.Engine().Once(sqldb.WithHook(w.Context(), func(point string) error {
		if died {
			return errCutOff
		}
		died = point == "after commit"
		return hook(point)
	}), resume.JobWork)
	if errors.Is(err, errCutOff) {
		return nil
	}
	return err
}
