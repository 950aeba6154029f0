package resumetest_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

type (
	world    = resumetest.World
	scenario = resumetest.Scenario
	actor    = resumetest.Actor
)

const (
	supplier  = "supplier@example.com"
	colleague = "colleague@example.com"
)

// TestMain closes with what all explorations did together.
func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Println(&total)
	os.Exit(code)
}

var total totals

type totals struct {
	mu      sync.Mutex
	stores  int // explorations: a scenario on a store
	mutants int // faults put in and found
	sum     resumetest.Report

	complete map[int]int // explorations by the bound that they completed
	cutOff   int
}

func (t *totals) add(r resumetest.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stores++
	t.sum.CrashPoints += r.CrashPoints
	t.sum.Schedules += r.Schedules
	t.sum.Crashed += r.Crashed
	t.sum.Deadlocks += r.Deadlocks
	t.sum.Violations += r.Violations
	if r.Schedules == 0 {
		return
	}
	if t.complete == nil {
		t.complete = map[int]int{}
	}
	for bound := range r.Complete + 1 {
		t.complete[bound]++
	}
	if r.Complete < r.Bound {
		t.cutOff++
	}
}

func (t *totals) found() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mutants++
}

func (t *totals) String() string {
	s := fmt.Sprintf("explorer: %d scenarios and stores, %d crash points, %d schedules (%d of them with a crash), %d violations; %d faults put into the engine and found",
		t.stores, t.sum.CrashPoints, t.sum.Schedules, t.sum.Crashed, t.sum.Violations, t.mutants)
	for _, bound := range slices.Sorted(maps.Keys(t.complete)) {
		s += fmt.Sprintf("\nexplorer: every schedule with at most %d preemptions in %d scenarios and stores", bound, t.complete[bound])
	}
	return s + fmt.Sprintf("\nexplorer: %d scenarios and stores cut off before their bound", t.cutOff)
}

// bounded is what a test run has time for; REPLYWAKE_EXPLORE=long takes all.
func bounded(t *testing.T) resumetest.Options {
	t.Helper()
	o := resumetest.Options{Postgres: testdb.URL(t), Stride: 43, Runs: 7, Random: 1, Done: total.add}
	if !resumetest.Long() && os.Getenv("RESUMETEST_SEED") == "" {
		h := fnv.New64a() // the same schedules at every run; a long exploration tries others
		_, _ = h.Write([]byte(t.Name()))
		o.Seed = h.Sum64()
	}
	switch {
	case os.Getenv("RESUMETEST_MUTANT") != "": // there is something to be found
		o.Stride, o.Runs, o.Random, o.NoSQLite = 1, 400, 20, raceEnabled
	case resumetest.Long():
		o.Stride, o.Runs, o.Random = 0, 0, 0
	case testing.Short():
		o.Stride, o.Runs, o.Random = 47, 4, -1
	case raceEnabled:
		o.Stride, o.Runs, o.Random = 47, 4, -1
	}
	return o
}

// explore explores a scenario on both stores.
func explore(t *testing.T, s scenario) {
	t.Helper()
	exploreWithin(t, s, bounded(t))
}

func exploreWithin(t *testing.T, s scenario, o resumetest.Options) {
	t.Helper()
	if !raceEnabled || resumetest.Long() || o.NoSQLite || o.Stride < 0 && o.Preemptions < 0 {
		resumetest.Explore(t, s, o)
		return
	}
	lite := o // SQLite is written in Go, and ten times slower under the race detector
	lite.Postgres = ""
	lite.Stride, lite.Runs = max(o.Stride*3, -1), 2
	resumetest.Explore(t, s, lite)
	o.NoSQLite = true
	resumetest.Explore(t, s, o)
}

// play runs a scenario once on each store, its actors one after another.
func play(t *testing.T, s scenario) {
	t.Helper()
	o := bounded(t)
	o.Stride, o.Preemptions = -1, -1
	resumetest.Explore(t, s, o)
}

// acks answers what came with one mail that names it.
func acks(_ context.Context, run *resume.Run) (resume.Next, error) {
	ids := replies(run)
	if len(ids) == 0 {
		return resume.Wait(0), nil
	}
	return answer(run, ids), nil
}

func replies(run *resume.Run) (ids []string) {
	for _, in := range run.Replies() {
		ids = append(ids, in.Message.ID)
	}
	return ids
}

func answer(run *resume.Run, ids []string) resume.Next {
	return resume.Send(client.Outgoing{
		To: []string{run.Counterparty}, Subject: "ack", Text: "ack: " + strings.Join(ids, ","), ReplyTo: ids[len(ids)-1],
	})
}

// ends is done with the first reply.
func ends(_ context.Context, run *resume.Run) (resume.Next, error) {
	if len(run.Inputs) == 0 {
		return resume.Wait(0), nil
	}
	return resume.Done(), nil
}

func mailTo(to, subject string) client.Outgoing {
	return client.Outgoing{To: []string{to}, Subject: subject, Text: "please quote"}
}

func question(id string) resume.Start {
	return resume.Start{ID: id, Counterparty: supplier, First: resume.Send(mailTo(supplier, "Quote request "+id))}
}

// do makes one act of several.
func do(acts ...func(*world) error) func(*world) error {
	return resumetest.Do("", acts...).Do
}

func start(s resume.Start) func(*world) error { return func(w *world) error { return w.Start(s) } }

// ask starts a workflow and lets its question leave.
func ask(id string) func(*world) error { return do(start(question(id)), (*world).Settle) }

func reply(id, text string) func(*world) error {
	return func(w *world) error { return w.ReplyAndPush(id, text) }
}

// replyOnceSent is a reply to what may not have left yet.
func replyOnceSent(id, text string) func(*world) error {
	return func(w *world) error {
		if err := w.ReplyAndPush(id, text); !errors.Is(err, resumetest.ErrNotSent) {
			return err
		}
		return nil
	}
}

// fresh is mail on a thread of its own.
func fresh(from, text string) func(*world) error {
	return func(w *world) error { return w.InboundAndPush(efatest.Mail{From: from, Text: text}) }
}

func jump(d time.Duration) func(*world) error { return func(w *world) error { return w.Jump(d) } }

var (
	work   = (*world).Work
	match  = (*world).Match
	send   = (*world).Send
	sweep  = (*world).Sweep
	settle = (*world).Settle
)

// status wants a workflow to stand at rest as said.
func status(id string, want resume.Status) func(*world) error {
	return func(w *world) error {
		got, err := w.Engine().Workflow(w.Context(), id)
		if err == nil && got.Status != want {
			err = fmt.Errorf("workflow %s is %s (%s), want %s", id, got.Status, got.Error, want)
		}
		return err
	}
}

// queue wants so many mails before a person, for this reason.
func queue(n int, reason string) func(*world) error {
	return func(w *world) error {
		items, err := w.Engine().Queue(w.Context(), "", 0)
		if err != nil {
			return err
		}
		if len(items) != n {
			return fmt.Errorf("the queue is %+v, want %d", items, n)
		}
		for _, item := range items {
			if item.Reason != reason {
				return fmt.Errorf("%s is in the queue for %s, want %s", item.EventID, item.Reason, reason)
			}
		}
		return nil
	}
}

// sent wants so many mails to have left.
func sent(n int) func(*world) error {
	return func(w *world) error {
		left := 0
		for _, s := range w.Provider().Sends() {
			if s.MessageID != "" {
				left++
			}
		}
		if left != n {
			return fmt.Errorf("%d mails left, want %d", left, n)
		}
		return nil
	}
}

// acked wants every message of the supplier to be named in exactly one mail.
func acked(w *world) error {
	times := map[string]int{}
	for _, m := range w.Provider().Messages("") {
		if !m.Outbound {
			times[m.ID] = 0
		}
	}
	for _, s := range w.Provider().Sends() {
		if list, ok := strings.CutPrefix(s.Text, "ack: "); ok {
			for id := range strings.SplitSeq(list, ",") {
				times[id]++
			}
		}
	}
	for id, n := range times {
		if n != 1 {
			return fmt.Errorf("message %s was answered %d times", id, n)
		}
	}
	return nil
}
