package resumetest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

const (
	minute = micros(60_000_000)
	day    = 24 * 60 * minute
	clock  = 1000 * day
)

// good is a history in which all is well: w1 asked, was answered and waits
// again, w2 is done, a stranger's mail is before a person.
func good() *facts {
	body := []byte("question")
	at := time.UnixMicro(int64(clock - day))
	f := &facts{
		explored: true,
		now: &tables{
			clock: clock,
			workflows: []workflow{
				{
					ID: "w1", Run: "r1", Inbox: "ibx", Counterparty: "a@example.com", Status: "waiting", Step: 1, Arrived: 2, Consumed: 2, Gen: 3,
					Due: clock + day, Deadline: clock + day,
				},
				{ID: "w2", Run: "r2", Inbox: "ibx", Counterparty: "b@example.com", Status: "done", Gen: 1, Finished: clock - day},
			},
			threads: []thread{{Stream: "s", Inbox: "ibx", Thread: "t1", Workflow: "w1", Run: "r1", MatchedBy: "send"}},
			mail: []letter{
				{
					ID: 1, Stream: "s", EventID: "e1", Kind: "received", Inbox: "ibx", Thread: "t1", Message: "m1", Place: "input", Workflow: "w1", Run: "r1",
					MatchedBy: "thread", ConsumedBy: 2, Due: clock - day,
				},
				{ID: 2, Stream: "s", EventID: "e2", Kind: "received", Inbox: "ibx", Thread: "t2", Message: "m2", Place: "review", Reason: "no_candidate", Due: clock},
				{
					ID: 3, Stream: "s", EventID: "signal:r1:paid", Kind: "signal", Inbox: "ibx", Place: "input", Workflow: "w1", Run: "r1", MatchedBy: "signal",
					ConsumedBy: 3, Due: clock,
				},
			},
			sends: []send{{
				Workflow: "w1", Run: "r1", Step: 1, Key: "r1-1", Hash: hashOf(body), State: "accepted", Attempts: 1, First: clock - day, Message: "m0", Thread: "t1", Bytes: 8,
			}},
			history: []happened{
				{"w1", "r1", "started", 1, 1},
				{"w1", "r1", "step", 2, 9},
				{"w2", "r2", "started", 1, 2},
				{"w2", "r2", "step", 1, 5},
			},
			seen:   []seen{{"e1"}, {"e2"}},
			calls:  []call{{ID: 1, Workflow: "w2", Run: "r2"}, {ID: 2, Workflow: "w1", Run: "r1", Gen: 2, Step: 1, Inputs: " e1 "}, {ID: 3, Workflow: "w1", Run: "r1", Gen: 3, Step: 1, Inputs: " signal:r1:paid "}},
			joined: []joined{{"start", "w1", ""}, {"start", "w2", ""}, {"signal", "w1", "paid"}},
		},
		record:   []efatest.Send{{Key: "r1-1", Body: body, MessageID: "m0", ThreadID: "t1"}},
		requests: []efatest.Request{{IdempotencyKey: "r1-1", At: at}},
		messages: []efatest.Message{{ID: "m1", From: "a@example.com"}, {ID: "m2", From: "who@example.com"}},
		events:   []efatest.Event{{ID: "e1", Inbox: "ibx", Sequence: 1, At: at}, {ID: "e2", Inbox: "ibx", Sequence: 2, At: at}},
		fed: map[string]events.Event{
			"e1": {ID: "e1", Kind: events.KindReceived, Inbox: "ibx"},
			"e2": {ID: "e2", Kind: events.KindReceived, Inbox: "ibx"},
		},
		taken:  map[string]bool{"e1": true, "e2": true},
		config: resume.Config{Inboxes: map[string][]string{"ibx": {"agent@example.com"}}},
		polls:  map[string]string{"sends_due": "Index Scan using sends_due on sends"},
	}
	f.later = f.record
	before := *f.now
	for _, list := range []func(){ // what a bad history changes must not be shared
		func() { before.workflows = slices.Clone(f.now.workflows) },
		func() { before.threads = slices.Clone(f.now.threads) },
		func() { before.mail = slices.Clone(f.now.mail) },
		func() { before.sends = slices.Clone(f.now.sends) },
		func() { before.calls = slices.Clone(f.now.calls) },
	} {
		list()
	}
	f.before = &before
	return f
}

func (f *facts) w1() *workflow { return f.now.workflow("w1") }

// commits adds a step call of w1.
func (f *facts) commits(c call) {
	c.ID, c.Workflow, c.Run = 4, "w1", "r1"
	f.now.calls = append(f.now.calls, c)
	f.says("w1", "step", 1)
}

// says adds lines to a timeline.
func (f *facts) says(workflow, what string, n int64) {
	f.now.history = append(slices.Clone(f.now.history), happened{workflow, f.now.workflow(workflow).Run, what, n, 20})
	for i, h := range f.now.history[:len(f.now.history)-1] {
		if h.Workflow == workflow && h.What == what {
			f.now.history[i] = happened{h.Workflow, h.Run, what, h.N + n, 20}
		}
	}
}

// bad are histories that break each invariant.
var bad = map[string]map[string]func(f *facts){
	"S1": {
		"two rows of an event":   func(f *facts) { f.now.mail[1].EventID = "e1" },
		"two rows of a message":  func(f *facts) { f.now.mail[1].Message = "m1" },
		"given to two runs":      func(f *facts) { f.commits(call{Step: 1, Inputs: " e1 "}) },
		"a message given to two": func(f *facts) { f.now.mail[1].Message = "m1"; f.commits(call{Step: 1, Inputs: " e2 "}) },
	},
	"S2": {
		"an old generation's call":      func(f *facts) { f.commits(call{Gen: 2, Step: 1}) },
		"a generation that goes back":   func(f *facts) { f.w1().Gen = 2 },
		"a stale run's give-back":       func(f *facts) { f.stale = []held{{"w1", 2}}; f.w1().Status = "runnable"; f.w1().Due = clock },
		"a stale run's failure":         func(f *facts) { f.stale = []held{{"w1", 2}}; f.w1().Attempts = 1 },
		"a stale run's begin":           func(f *facts) { f.stale = []held{{"w1", 2}}; f.w1().Updated = clock },
		"a stale run's heartbeat":       func(f *facts) { f.stale = []held{{"w1", 2}}; f.w1().Due += minute },
		"a stale run's verdict":         func(f *facts) { f.stale = []held{{"w1", 2}}; f.now.mail[1].Place = "settled" },
		"a stale run's look at a mail":  func(f *facts) { f.stale = []held{{"w1", 2}}; f.now.mail[0].Attempts++ },
		"a stale run's line of history": func(f *facts) { f.stale = []held{{"w1", 2}}; f.says("w1", "failed", 1) },
	},
	"S3": {
		"a step back":        func(f *facts) { f.w1().Step = 0 },
		"two steps":          func(f *facts) { f.w1().Step = 3 },
		"a step and no send": func(f *facts) { f.w1().Step = 2 },
		"a send and no step": func(f *facts) {
			f.now.sends = append(f.now.sends, send{Workflow: "w1", Run: "r1", Step: 2, Key: "r1-2", State: "accepted"})
		},
		"other bytes": func(f *facts) { f.now.sends[0].Hash = "x" },
		"another key": func(f *facts) { f.now.sends[0].Key = "x" },
		"one key of two": func(f *facts) {
			f.now.sends = append(f.now.sends, send{Workflow: "w2", Run: "r0", Step: 1, Key: "r1-1", State: "accepted"})
		},
	},
	"S4": {
		"a second body":          func(f *facts) { f.record[0].Conflict = 1 },
		"not planned":            func(f *facts) { f.record[0].Key = "x" },
		"other bytes left":       func(f *facts) { f.record[0].Body = []byte("x") },
		"a dropped send left":    func(f *facts) { f.now.sends[0].State = "dropped" },
		"undocumented requests":  func(f *facts) { f.breaches = []string{"x"} },
		"again after its window": func(f *facts) { f.requests[0].At = f.requests[0].At.Add(30 * 24 * time.Hour) },
		"unknown, and waiting": func(f *facts) {
			f.now.sends[0].State, f.before.sends[0].State = "unknown", "unknown"
		},
		"unknown, and on its way": func(f *facts) {
			f.now.sends[0].State, f.w1().Status, f.w1().Due = "unknown", "runnable", clock
		},
		"unknown, and on its way before the last review": func(f *facts) {
			f.now.sends[0].State = "unknown"
			f.now.history = append(slices.Clone(f.now.history), happened{"w1", "r1", "run_now", 1, 3}, happened{"w1", "r1", "review", 1, 4})
		},
	},
	"S5": {
		"planned":               func(f *facts) { f.now.sends[0].State, f.now.sends[0].Due = "planned", clock },
		"held":                  func(f *facts) { f.now.sends[0].State = "held" },
		"accepted by nobody":    func(f *facts) { f.later = []efatest.Send{{Key: "r1-1", Body: f.record[0].Body}} },
		"failed, and not told":  func(f *facts) { f.now.sends[0].State = "failed" },
		"failed, told another":  func(f *facts) { f.now.sends[0].State = "failed"; f.now.mail[2].EventID = "send:r1-2" },
		"done over a held one":  func(f *facts) { f.now.sends[0].State = "held"; f.w1().Status = "done" },
		"sending what is over":  func(f *facts) { f.w1().Status = "sending" },
		"awaits what is over":   func(f *facts) { f.w1().Status = "awaiting_approval" },
		"dropped, not reopened": func(f *facts) { f.record, f.now.sends[0].State = nil, "dropped" },
	},
	"S6": {
		"never shown": func(f *facts) {
			f.now.mail[1].Place, f.now.mail[1].Workflow, f.now.mail[1].Run, f.now.mail[1].ConsumedBy = "input", "w1", "r1", 2
		},
		"shown, not consumed":    func(f *facts) { f.now.mail[0].ConsumedBy = 0 },
		"review for no reason":   func(f *facts) { f.now.mail[1].Reason = "" },
		"shown to another's run": func(f *facts) { f.now.mail[0].Workflow, f.now.mail[0].Run = "w2", "r2" },
	},
	"S7": {
		"nowhere":              func(f *facts) { f.now.mail = f.now.mail[:1] },
		"two places":           func(f *facts) { f.now.parked = []parked{{EventID: "e2"}} },
		"a place of no name":   func(f *facts) { f.now.mail[1].Place = "x" },
		"review with an owner": func(f *facts) { f.now.mail[1].Workflow = "w1" },
		"brought by nobody":    func(f *facts) { delete(f.fed, "e2"); delete(f.taken, "e2") },
		"a wrong count":        func(f *facts) { f.w1().Status, f.w1().Due, f.w1().Arrived = "runnable", clock, 3 },
		"pending with who is over": func(f *facts) {
			f.now.mail[1].Place, f.now.mail[1].Workflow, f.now.mail[1].Run, f.now.mail[1].MatchedBy = "input", "w2", "r2", "person"
		},
	},
	"S8": {
		"another's thread":         func(f *facts) { f.arrives("t1", "thread"); f.now.threads[0].Workflow = "w2" },
		"nobody's thread":          func(f *facts) { f.arrives("t2", "thread") },
		"a pending one's thread":   func(f *facts) { f.arrives("t2", "thread"); f.before = f.now },
		"a sender of two":          func(f *facts) { f.arrives("t1", "sender"); f.live("w3") },
		"a live owner overwritten": func(f *facts) { f.live("w3"); f.now.threads[0].Workflow, f.now.threads[0].Run = "w3", "r3" },
		"a live owner's row gone":  func(f *facts) { f.now.threads = nil },
		"an undo of a send's":      func(f *facts) { f.now.threads = nil; f.says("w1", "unbound", 1) },
	},
	"S9": {
		"left a terminal state": func(f *facts) { f.now.workflows[1].Status, f.now.workflows[1].Due = "runnable", clock },
		"began over a live one": func(f *facts) { f.before.workflows[0].Run = "r0" },
		"over a pending answer": func(f *facts) {
			f.before.workflows[0].Arrived++
			f.before.workflows[0].Deadline = clock - minute
			f.commits(call{Step: 1, TimedOut: 1, Timeouts: 1})
		},
		"one deadline twice": func(f *facts) {
			f.now.calls = append(f.now.calls, call{ID: 4, Workflow: "w1", Run: "r1", Step: 1, TimedOut: 1, Timeouts: 1})
			f.before.calls = slices.Clone(f.now.calls)
			f.before.workflows[0].Deadline = clock - minute
			f.commits(call{Step: 1, TimedOut: 1, Timeouts: 1})
		},
		"a deadline left out": func(f *facts) { f.commits(call{Step: 1, TimedOut: 1, Timeouts: 2}) },
	},
	"S10": {
		"a step without the user's": func(f *facts) { f.says("w1", "step", 1) },
		"the user's without a step": func(f *facts) {
			f.now.calls = append(f.now.calls, call{ID: 4, Workflow: "w1", Run: "r1", Gen: 3, Step: 1})
		},
		"a start without the user's": func(f *facts) {
			f.now.joined = f.now.joined[1:]
		},
		"the user's without a start":  func(f *facts) { f.now.joined = append(f.now.joined, joined{"start", "w9", ""}) },
		"a signal without the user's": func(f *facts) { f.now.joined = f.now.joined[:2] },
		"the user's without a signal": func(f *facts) { f.now.joined = append(f.now.joined, joined{"signal", "w1", "x"}) },
	},
	"S11": {
		"not stored": func(f *facts) { f.now.seen = f.now.seen[:1] },
		"above the floor": func(f *facts) {
			f.now.seen = f.now.seen[:1]
			f.now.floors = []floor{{Inbox: "ibx", SweptFrom: 1, SweptUntil: 1}}
		},
		"below the floor": func(f *facts) {
			f.now.seen = f.now.seen[1:]
			f.now.floors = []floor{{Inbox: "ibx", SweptFrom: 2, SweptUntil: 2}}
		},
		"another's floor": func(f *facts) {
			f.now.seen = f.now.seen[:1]
			f.now.floors = []floor{{Inbox: "other", SweptFrom: 1, SweptUntil: 9}}
		},
		"not pushed then": func(f *facts) { f.now.seen = f.now.seen[:1]; f.now.floors = []floor{{Inbox: "ibx", From: 1, Until: 2}} },
		"the clock differs": func(f *facts) {
			f.now.seen = nil
			f.behind = time.Hour
			f.now.floors = []floor{{Inbox: "ibx", From: clock - day - 1, Until: clock}}
		},
	},
	"L1":         {"asleep": func(f *facts) { f.arrives("t1", "thread"); f.w1().Status, f.w1().Due = "waiting", clock+day }},
	"L1 at rest": {"pending": func(f *facts) { f.arrives("t1", "thread") }},
	"L2": {
		"never tried": func(f *facts) { f.plans(send{Bytes: 1}) },
		"no bytes":    func(f *facts) { f.plans(send{Due: clock}) },
	},
	"L2 at rest": {"planned": func(f *facts) { f.plans(send{Due: clock, Bytes: 1}) }},
	"L3": {
		"never looked at": func(f *facts) { f.now.mail[1].Place, f.now.mail[1].Due = "unplaced", 0 },
		"much later":      func(f *facts) { f.now.mail[1].Place, f.now.mail[1].Due = "unplaced", clock+2*day },
	},
	"L3 at rest": {
		"unplaced":      func(f *facts) { f.now.mail[1].Place = "unplaced" },
		"of its thread": func(f *facts) { f.now.mail[1].Thread = "t1" },
	},
	"L4": {
		"no owner":        func(f *facts) { f.w1().Status, f.w1().Due = "running", clock+1 },
		"an endless one":  func(f *facts) { f.w1().Status, f.w1().Owner, f.w1().Due = "running", "p", clock+day },
		"an idle owner's": func(f *facts) { f.w1().Owner = "p" },
	},
	"L4 at rest": {
		"running":       func(f *facts) { f.w1().Status, f.w1().Owner, f.w1().Due = "running", "p", clock+1 },
		"never arrived": func(f *facts) { f.events = append(f.events, efatest.Event{ID: "e3"}) },
	},
	"L5": {
		"not found":         func(f *facts) { f.w1().Status, f.w1().Due = "runnable", 0 },
		"a deadline is not": func(f *facts) { f.w1().Due = 0 },
		"found too late":    func(f *facts) { f.w1().Due = clock + 2*day },
	},
	"L6": {
		"for ever": func(f *facts) { f.w1().Status, f.w1().Due, f.w1().Attempts = "runnable", clock+day, 10 },
		"first in line": func(f *facts) {
			f.before.workflows[0].Status, f.before.workflows[0].Updated = "running", clock-1
			f.w1().Status, f.w1().Due, f.w1().Attempts = "runnable", clock, 1
		},
	},
	"L7": {
		"no instant": func(f *facts) { f.now.zoneless = []string{"mail.due"} },
		"too early":  func(f *facts) { f.commits(call{Step: 1, TimedOut: 1, Timeouts: 1}) },
		"of no deadline": func(f *facts) {
			f.before.workflows[0].Deadline = 0
			f.commits(call{Step: 1, TimedOut: 1, Timeouts: 1})
		},
	},
	"L7 at rest": {"passed": func(f *facts) { f.w1().Deadline = clock - minute }},
	"L8": {
		"mail": func(f *facts) { f.now.mail = f.now.mail[:2]; f.now.joined = f.now.joined[:2] },
		"a live workflow": func(f *facts) {
			f.before.workflows = append(f.before.workflows, workflow{ID: "w4", Run: "r4", Status: "waiting"})
		},
		"a finished one, early": func(f *facts) {
			f.before.workflows = append(f.before.workflows, workflow{ID: "w4", Run: "r4", Status: "done", Finished: clock - day})
		},
		"many IDs": func(f *facts) { f.before.seen = make([]seen, 2000) },
	},
	"L8 at rest": {"a table scan": func(f *facts) { f.polls = map[string]string{"sends_due": "Seq Scan on sends"} }},
}

// arrives gives w1 the second mail as a pending input.
func (f *facts) arrives(thread, by string) {
	w, l := f.w1(), &f.now.mail[1]
	w.Status, w.Due = "runnable", clock
	w.Arrived++
	l.Place, l.Workflow, l.Run, l.MatchedBy, l.Reason, l.Thread, l.Message = "input", "w1", "r1", by, "", thread, "m3"
	f.messages = append(f.messages, efatest.Message{ID: "m3", From: "a@example.com"})
}

// live adds another workflow of w1's counterparty.
func (f *facts) live(id string) {
	f.now.workflows = append(f.now.workflows, workflow{ID: id, Run: "r3", Inbox: "ibx", Counterparty: "a@example.com", Status: "waiting"})
	f.now.history = append(slices.Clone(f.now.history), happened{id, "r3", "started", 1, 10})
	f.now.joined = append(f.now.joined, joined{"start", id, ""})
}

// plans makes w1 plan a second send.
func (f *facts) plans(s send) {
	s.Workflow, s.Run, s.Step, s.Key, s.State = "w1", "r1", 2, "r1-2", "planned"
	f.now.sends = append(f.now.sends, s)
	f.w1().Step, f.w1().Status, f.w1().Due, f.w1().Deadline = 2, "sending", 0, 0
}

func TestInvariantsHoldOfAGoodHistory(t *testing.T) {
	t.Parallel()
	for _, i := range Invariants() {
		require.NoError(t, i.check(good()), i.Name)
	}
}

// Every invariant sees what breaks it.
func TestInvariantsFindABadHistory(t *testing.T) {
	t.Parallel()
	known := maps.Clone(bad)
	for _, i := range Invariants() {
		if i.Name == locks.Name {
			continue // seen by the scheduler: TestDeadlockIsFound
		}
		require.NotEmpty(t, known[i.Name], "%s is never seen to fail", i.Name)
		for name, spoil := range known[i.Name] {
			f := good()
			spoil(f)
			require.Error(t, i.check(f), "%s passes over: %s", i.Name, name)
		}
		delete(known, i.Name)
	}
	require.Empty(t, known, "no such invariants")
}

// What is allowed looks much like what is not.
func TestInvariantsHoldOfWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *facts){
		"forgotten within a floor": func(f *facts) { f.now.seen = nil; f.now.floors = []floor{{Inbox: "ibx", SweptFrom: 1, SweptUntil: 2}} },
		"forgotten pushes": func(f *facts) {
			f.now.seen = nil
			f.now.floors = []floor{{Inbox: "ibx", From: clock - 2*day, Until: clock}}
		},
		"a person moves on": func(f *facts) { f.now.sends[0].State = "unknown"; f.says("w1", "run_now", 1) },
		"a person takes a thread": func(f *facts) {
			f.before.threads[0].MatchedBy = "person"
			f.now.threads = nil
			f.says("w1", "unbound", 1)
		},
		"failed, and told": func(f *facts) { f.now.sends[0].State = "failed"; f.knows("send:r1-1") },
		"a finished workflow's prune": func(f *facts) {
			f.before.workflows[1].Finished = clock - 100*day
			f.now.workflows = f.now.workflows[:1]
		},
		"deadlines one after another": func(f *facts) {
			f.before.workflows[0].Deadline = clock - minute
			f.now.calls = append(f.now.calls, call{ID: 4, Workflow: "w1", Run: "r1", Step: 1, TimedOut: 1, Timeouts: 1})
			f.says("w1", "step", 1)
			f.before.calls = slices.Clone(f.now.calls)
			f.now.calls = append(f.now.calls, call{ID: 5, Workflow: "w1", Run: "r1", Step: 1, TimedOut: 1, Timeouts: 2})
			f.says("w1", "step", 1)
		},
	} {
		f := good()
		change(f)
		_, err := f.check(false)
		require.NoError(t, err, name)
	}
}

// knows gives w1's second run what became of its send, instead of the signal.
func (f *facts) knows(event string) {
	f.now.mail[2].EventID, f.now.mail[2].Kind = event, "send_error"
	f.before.mail = slices.Clone(f.now.mail)
	f.now.calls[2].Inputs = " " + event + " "
	f.before.calls = slices.Clone(f.now.calls)
	f.now.joined = f.now.joined[:2]
}
