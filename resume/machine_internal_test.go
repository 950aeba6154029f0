package resume

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/replywake/replywake/client"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// What arrives in each status, and what release makes of it.
func TestArriveInEachStatus(t *testing.T) {
	t.Parallel()
	for before, after := range map[Status]Status{
		StatusWaiting: StatusRunnable, StatusRunnable: StatusRunnable, StatusRunning: StatusRunning, StatusSending: StatusSending,
		StatusAwaitingApproval: StatusAwaitingApproval, StatusNeedsReview: StatusNeedsReview,
	} {
		s := state{Status: before, Step: 3, Arrived: 4, Consumed: 4}.arrive(1, noon)
		require.Equal(t, after, s.Status, before)
		require.True(t, s.pending(), before)
		if after == StatusRunnable && before == StatusWaiting {
			require.Equal(t, noon, s.Due)
		}
	}
}

// Every way to rest looks at what arrived meanwhile.
func TestEveryWayToRestSeesPendingInputs(t *testing.T) {
	t.Parallel()
	at := func(status Status) state { return state{Status: status, Step: 1, Arrived: 1} }
	for name, s := range map[string]state{
		"accepted":          at(StatusSending).accepted(1, noon),
		"approved":          at(StatusAwaitingApproval).accepted(1, noon),
		"refused":           at(StatusSending).refused(1, noon),
		"rejected":          at(StatusAwaitingApproval).refused(1, noon),
		"wait":              at(StatusRunning).commit(Wait(time.Hour), 0, noon),
		"done":              at(StatusRunning).commit(Done(), 0, noon),
		"nothing to do":     at(StatusRunning).yield(noon, time.Time{}),
		"given back":        at(StatusRunning).release(noon),
		"reviewed":          at(StatusNeedsReview).runNow(noon),
		"one of two undone": state{Status: StatusRunnable, Arrived: 2}.takeAway(1, noon),
	} {
		require.Equal(t, StatusRunnable, s.Status, name)
		require.False(t, s.Due.IsZero(), name)
	}
}

func TestDeadlineOfEachNext(t *testing.T) {
	t.Parallel()
	mail := client.Outgoing{To: []string{"a@example.com"}}
	s := state{Status: StatusRunning, Deadline: noon.Add(-time.Hour), TimedOut: true}
	require.True(t, s.commit(Wait(0), 0, noon).Deadline.IsZero())
	require.Equal(t, noon.Add(time.Hour), s.commit(Wait(time.Hour), 0, noon).Deadline)
	sending := s.commit(Send(mail).Wait(time.Hour), 0, noon)
	require.True(t, sending.Deadline.IsZero())
	later := noon.Add(5 * time.Hour)
	require.Equal(t, later.Add(time.Hour), sending.held(1).accepted(1, later).Deadline, "from the acceptance")
	require.Equal(t, StatusDone, s.commit(Send(mail).Done(), 0, noon).accepted(1, noon).Status)
}

func TestClaimOfADeadline(t *testing.T) {
	t.Parallel()
	waiting := state{Status: StatusWaiting, Deadline: noon, Due: noon}
	for name, c := range map[string]struct {
		now, through time.Time
		ours         bool
		due          time.Time
	}{
		"too early":       {noon.Add(-1), noon.Add(-1), false, noon},
		"not current":     {noon.Add(time.Hour), noon.Add(-1), false, noon.Add(time.Hour + recheck)},
		"current":         {noon.Add(time.Hour), noon, true, noon.Add(time.Hour + time.Minute)},
		"on the instant":  {noon, noon, true, noon.Add(time.Minute)},
		"clock went back": {noon.Add(-time.Hour), noon.Add(time.Hour), false, noon},
	} {
		s, ours := waiting.claim(c.now, c.through, time.Minute, 10)
		require.Equal(t, c.ours, ours, name)
		require.Equal(t, c.ours, s.TimedOut, name)
		require.Equal(t, c.due, s.Due, name)
		if !ours {
			require.Equal(t, StatusWaiting, s.Status, name)
			require.Zero(t, s.Gen, name)
		}
	}
}

func TestLostLeases(t *testing.T) {
	t.Parallel()
	s := state{Status: StatusRunning, Arrived: 1, Gen: 7}
	for _, begun := range []bool{false, true, false, false} {
		var ours bool
		s.Begun = begun
		s, ours = s.claim(noon, noon, time.Minute, 3)
		require.True(t, ours)
		require.False(t, s.Begun)
	}
	require.Equal(t, int64(11), s.Gen)
	require.Equal(t, int64(2), s.Attempts, "the first, and the one within the step")
	s.Begun = true
	s, ours := s.claim(noon, noon, time.Minute, 3)
	require.False(t, ours)
	require.Equal(t, StatusNeedsReview, s.Status)
	require.NotEmpty(t, s.Error)
	require.True(t, s.pending())
}

// world drives one workflow's state the way the engine does.
type world struct {
	state
	now time.Time
}

func (w *world) set(t *rapid.T, op string, next state) {
	before := w.state
	w.state = next
	w.check(t, op, before)
}

func (w *world) check(t *rapid.T, op string, before state) {
	s := w.state
	is := func(ok bool, why string) {
		t.Helper()
		if !ok {
			t.Fatalf("%s: %s\nbefore %+v\nafter  %+v", op, why, before, s)
		}
	}
	is(s.Status != StatusWaiting || !s.pending() && !s.Kick, "waiting with something to do")
	is(s.Status != StatusWaiting || s.Deadline.IsZero() == s.Due.IsZero(), "a deadline that nobody looks at")
	is(s.Status != StatusRunnable && s.Status != StatusRunning || !s.Due.IsZero(), "work that nobody looks at")
	is(!s.Status.Terminal() || s.Due.IsZero(), "due after the end")
	is(!before.Status.Terminal() || s.Status == before.Status || op == "reopen", "left a terminal state")
	is(!s.Status.Terminal() || !s.pending(), "over with pending inputs")
	is(s.Consumed <= s.Arrived && s.Arrived >= before.Arrived && s.Consumed >= before.Consumed, "inputs out of count")
	is(s.Gen == before.Gen || op == "claim" && s.Gen == before.Gen+1 && s.Status == StatusRunning, "a generation without a claim")
	is(s.Step == before.Step || op == "send" && s.Step == before.Step+1, "a step without a send")
	is(!s.TimedOut || s.Status == StatusRunning, "timed out and not running")
	is(s.Status != StatusNeedsReview || s.Error != "", "in review without a reason")
}

func (w *world) pendingCount() int64 { return w.Arrived - w.Consumed }

// ops are what the engine may do to a state, each under its own condition.
func (w *world) ops() map[string]func(*rapid.T) {
	step := func(t *rapid.T) int64 { return w.Step - rapid.Int64Range(0, 1).Draw(t, "steps ago") }
	some := func(t *rapid.T) int64 { return rapid.Int64Range(0, w.pendingCount()).Draw(t, "consumed") }
	running := func(fn func(t *rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if w.Status != StatusRunning {
				t.Skip("fenced")
			}
			fn(t)
		}
	}
	live := func(fn func(t *rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if w.Status.Terminal() {
				t.Skip("over")
			}
			fn(t)
		}
	}
	return map[string]func(*rapid.T){
		"time": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.Int64Range(1, int64(3*time.Hour)).Draw(t, "passes")))
		},
		"arrive": live(func(t *rapid.T) {
			hold := time.Duration(rapid.Int64Range(0, 10).Draw(t, "hold")) * time.Second
			w.set(t, "arrive", w.arrive(1, w.now.Add(hold)))
		}),
		"takeAway": live(func(t *rapid.T) {
			if !w.pending() {
				t.Skip("nothing to take")
			}
			w.set(t, "takeAway", w.takeAway(1, w.now))
		}),
		"claim": func(t *rapid.T) {
			if w.Due.IsZero() || w.Due.After(w.now) {
				t.Skip("not due")
			}
			through := w.now.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "lag")))
			next, ours := w.claim(w.now, through, time.Minute, 3)
			if ours != (next.Gen > w.Gen) || ours != (next.Status == StatusRunning) {
				t.Fatalf("claimed %v, but %+v became %+v", ours, w.state, next)
			}
			w.set(t, "claim", next)
		},
		"wait":   running(func(t *rapid.T) { w.set(t, "wait", w.commit(Wait(time.Hour), some(t), w.now)) }),
		"listen": running(func(t *rapid.T) { w.set(t, "listen", w.commit(Wait(0), some(t), w.now)) }),
		"done":   running(func(t *rapid.T) { w.set(t, "done", w.commit(Done(), some(t), w.now)) }),
		"review": running(func(t *rapid.T) { w.set(t, "review", w.commit(Review("why"), some(t), w.now)) }),
		"send": running(func(t *rapid.T) {
			next := Send(client.Outgoing{}).Wait(time.Hour)
			if rapid.Bool().Draw(t, "then done") {
				next = Send(client.Outgoing{}).Done()
			}
			w.set(t, "send", w.commit(next, some(t), w.now))
		}),
		"yield":    running(func(t *rapid.T) { w.set(t, "yield", w.yield(w.now, w.now.Add(time.Second))) }),
		"giveBack": running(func(t *rapid.T) { w.set(t, "giveBack", w.release(w.now)) }),
		"fail":     running(func(t *rapid.T) { w.set(t, "fail", w.fail("broken", w.now, time.Second, 3)) }),
		"stall":    running(func(t *rapid.T) { w.set(t, "stall", w.stall("away", w.now, time.Second)) }),
		"accepted": func(t *rapid.T) { w.set(t, "accepted", w.accepted(step(t), w.now)) },
		"held":     func(t *rapid.T) { w.set(t, "held", w.held(step(t))) },
		"doubt":    func(t *rapid.T) { w.set(t, "doubt", w.reviewSend(step(t), "unknown")) },
		"refused": live(func(t *rapid.T) {
			w.set(t, "refused", w.arrive(1, w.now).refused(step(t), w.now))
		}),
		"cancel": live(func(t *rapid.T) {
			s := w.state
			s.Consumed = s.Arrived
			w.set(t, "cancel", s.cancel())
		}),
		"reopen": func(t *rapid.T) {
			if !w.Status.Terminal() {
				t.Skip("not over")
			}
			w.set(t, "reopen", w.reopen(w.now, ""))
		},
		"runNow": live(func(t *rapid.T) { w.set(t, "runNow", w.runNow(w.now)) }),
	}
}

func TestMachineKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{state: state{Status: StatusRunnable, Kick: true, Due: noon}, now: noon}
		t.Repeat(w.ops())
	})
}

// From wherever it stands, a workflow with a pending input is run once what it
// waits for at others has come.
func TestPendingInputIsAlwaysReached(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{state: state{Status: StatusRunnable, Kick: true, Due: noon}, now: noon}
		t.Repeat(w.ops())
		if w.Status.Terminal() {
			return
		}
		w.state = w.arrive(1, w.now)
		switch w.Status {
		case StatusSending, StatusAwaitingApproval:
			w.state = w.accepted(w.Step, w.now)
		case StatusNeedsReview:
			w.state = w.runNow(w.now)
		case StatusRunning:
			w.state = w.commit(Done(), 0, w.now)
		case StatusRunnable, StatusWaiting, StatusDone, StatusCanceled:
		}
		if w.Status != StatusRunnable {
			t.Fatalf("it sleeps on its input: %+v", w.state)
		}
		w.now = w.now.Add(time.Hour)
		if _, ours := w.claim(w.now, w.now, time.Minute, 100); !ours {
			t.Fatalf("nobody gets it: %+v", w.state)
		}
	})
}

// A send moves only the step that planned it.
func TestOutcomeOfAnotherStepMovesNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{StatusSending, StatusAwaitingApproval, StatusRunning, StatusWaiting, StatusNeedsReview, StatusDone, StatusCanceled} {
		s := state{Status: status, Step: 2, Arrived: 1, Wait: time.Hour}
		for _, step := range []int64{0, 1, 3} {
			require.Equal(t, s, s.accepted(step, noon))
			require.Equal(t, s, s.held(step))
			require.Equal(t, s, s.refused(step, noon))
			require.Equal(t, s, s.reviewSend(step, "why"))
		}
		if status != StatusSending && status != StatusAwaitingApproval {
			require.Equal(t, s, s.accepted(2, noon), "a stale sender: %s", status)
		}
	}
}
