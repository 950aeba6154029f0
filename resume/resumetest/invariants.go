package resumetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// Invariant is a promise of package resume that the explorer checks: after
// every commit, or AtRest when nothing is due any more.
type Invariant struct {
	Name    string
	Promise string
	AtRest  bool

	check func(*facts) error
}

// Invariants are all that the explorer checks, in order: the safety and the
// liveness that package resume promises.
func Invariants() []Invariant {
	return []Invariant{
		{"S1", "an event and a message have one row, and are given to one committed step run at most", false, oneRow},
		{"S2", "only the generation that holds the workflow commits; an older one changes nothing", false, oneGeneration},
		{"S3", "a committed run plans at most one send; a send's key and bytes never change", false, oneSendAStep},
		{"S4", "the provider never sees a key with two bodies, a send that is not planned, or one after its window; what is unknown is a person's", false, sentOnce},
		{"S5", "who waits, waits for an answer to mail that left, or knows that it did not", false, waitsForWhatLeft},
		{"S6", "what is consumed was shown to the run that committed, or a verdict is stored", false, consumedWasShown},
		{"S7", "an event is in exactly one place, and every workflow counts its own", false, onePlace},
		{"S8", "a thread has one owner, its input is that one's, or of the one workflow its sender could mean", false, rightOwner},
		{"S9", "nothing leaves a terminal state but a reopening; a deadline fires once, and not over an answer", false, terminalStays},
		{"S10", "what the user writes and what the engine writes commit together", false, together},
		{"S11", "an event that was acknowledged is stored, or below a floor", false, durable},
		locks,
		{"L1", "nobody waits with an input pending", false, nobodySleeps},
		{"L1 at rest", "an input that is pending is with a person", true, inputsAreTaken},
		{"L2", "a send without an outcome has its bytes, and a moment for its next attempt", false, sendsAreDue},
		{"L2 at rest", "a send has an outcome", true, sendsEnd},
		{"L3", "mail that nobody has placed is looked at again", false, mailIsDue},
		{"L3 at rest", "mail of a known thread is its owner's, and none is left unplaced", true, mailIsPlaced},
		{"L4", "a run has an owner and a lease, and the lease ends", false, leasesEnd},
		{"L4 at rest", "nothing is still running, and every event has arrived", true, nothingLeft},
		{"L5", "what must be done next has a moment at which a poll finds it, whoever is told", false, pollsFindIt},
		{"L6", "a run that failed is put off, and after so many a person is asked", false, failuresAreBounded},
		{"L7", "times are instants, and a deadline fires behind its moment", false, clocksAgree},
		{"L7 at rest", "nobody waits past a deadline", true, deadlinesFire},
		{"L8", "nothing is dropped that a replay needs, and little at a time", false, keptForReplays},
		{"L8 at rest", "what is polled for is found by its index", true, pollsAreIndexed},
	}
}

// locks is seen by the scheduler, not in the tables.
var locks = Invariant{"Locks", "no two transactions wait for each other", false, func(*facts) error { return nil }}

// facts are what an invariant is checked against.
type facts struct {
	before, now *tables // around one commit; the same at rest

	// loose: there may be more than one commit between before and now.
	loose bool
	// explored: every event came in by a World's doors, and every start and signal
	// in a transaction of the user's.
	explored bool

	record   []efatest.Send    // of the provider, from before now was read
	later    []efatest.Send    // and from after it
	requests []efatest.Request // since the last check
	breaches []string          // of what a client must never do at the provider
	messages []efatest.Message
	events   []efatest.Event
	behind   time.Duration // the database's clock, behind the provider's

	fed    map[string]events.Event
	taken  map[string]bool
	config resume.Config
	stale  []held            // runs of who has just committed, which were over before
	polls  map[string]string // the plans of what polls, by the index that they should use
}

// held is a run in a generation.
type held struct {
	id  string
	gen int64
}

func (t *tables) workflow(id string) *workflow {
	for i := range t.workflows {
		if t.workflows[i].ID == id {
			return &t.workflows[i]
		}
	}
	return nil
}

// live is the workflow's row if run is its present run and not over.
func (t *tables) live(id, run string) *workflow {
	if w := t.workflow(id); w != nil && w.Run == run && !w.terminal() {
		return w
	}
	return nil
}

func (t *tables) letter(event string) *letter {
	if t.letters != nil {
		return t.letters[event]
	}
	for i := range t.mail {
		if t.mail[i].EventID == event {
			return &t.mail[i]
		}
	}
	return nil
}

func (t *tables) send(workflow, run string, step int64) *send {
	for i := range t.sends {
		if s := &t.sends[i]; s.Workflow == workflow && s.Run == run && s.Step == step {
			return s
		}
	}
	return nil
}

func (t *tables) sendOf(key string) *send {
	for i := range t.sends {
		if t.sends[i].Key == key {
			return &t.sends[i]
		}
	}
	return nil
}

func (t *tables) owner(inbox, id string) (workflow, run string) {
	for _, o := range t.threads {
		if o.Inbox == inbox && o.Thread == id {
			return o.Workflow, o.Run
		}
	}
	return "", ""
}

func (t *tables) happened(workflow, run, what string) int64 {
	return t.lines(workflow, run, what).N
}

// lines of a run's timeline say what.
func (t *tables) lines(workflow, run, what string) happened {
	for _, h := range t.history {
		if h.Workflow == workflow && h.Run == run && h.What == what {
			return h
		}
	}
	return happened{}
}

// pruned says whether a run's timeline, or the beginning of it, is gone.
func (t *tables) pruned(w *workflow) bool {
	return w.terminal() && t.happened(w.ID, w.Run, "started") == 0
}

// newCalls are the step calls that this commit committed.
func (f *facts) newCalls() []call {
	var out []call
	for _, c := range f.now.calls {
		known := false
		for _, b := range f.before.calls {
			known = known || b.ID == c.ID
		}
		if !known {
			out = append(out, c)
		}
	}
	return out
}

// used says whether an engine makes a mail row of an event.
func (f *facts) used(ev events.Event) bool {
	if ev.Kind == events.KindApproval {
		return ev.Decision == events.DecisionRejected && (ev.Inbox == "" || f.config.Inboxes[ev.Inbox] != nil)
	}
	switch ev.Kind {
	case events.KindReceived, events.KindQueued, events.KindDelivery, events.KindBounce, events.KindComplaint:
		return f.config.Inboxes[ev.Inbox] != nil
	}
	return false
}

func (f *facts) sender(message string) string {
	for _, m := range f.messages {
		if m.ID == message {
			from, _ := client.NormalizeAddress(m.From)
			return from
		}
	}
	return ""
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// first joins nothing: one fault of an invariant says enough.
func first(faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// check runs the invariants and returns the first that does not hold.
func (f *facts) check(atRest bool) (broken string, err error) {
	for _, i := range Invariants() {
		if i.AtRest && !atRest {
			continue
		}
		if err := i.check(f); err != nil {
			return i.Name + ": " + i.Promise, err
		}
	}
	return "", nil
}

var errTwice = errors.New("twice")

func unique[T any](rows []T, key func(T) string) error {
	known := map[string]bool{}
	for _, r := range rows {
		k := key(r)
		if k == "" {
			continue
		}
		if known[k] {
			return fmt.Errorf("%s: %w", k, errTwice)
		}
		known[k] = true
	}
	return nil
}
