package resumetest

import (
	"fmt"
	"strings"

	"github.com/replywake/replywake/resume"
)

func oneRow(f *facts) error {
	events := unique(f.now.mail, func(l letter) string { return l.EventID })
	messages := unique(f.now.mail, func(l letter) string {
		if l.Kind != "received" || l.AliasOf != 0 || l.Message == "" {
			return ""
		}
		return l.Inbox + "/" + l.Message
	})
	given := map[string]int64{}
	for _, c := range f.now.calls {
		for event := range strings.FieldsSeq(c.Inputs) {
			for _, k := range f.keysOf(event) {
				if other := given[k]; other != 0 {
					return fmt.Errorf("%s was given to the committed step calls %d and %d", k, other, c.ID)
				}
				given[k] = c.ID
			}
		}
	}
	return first(events, messages)
}

// keysOf are the event and, of a message, the message.
func (f *facts) keysOf(event string) []string {
	keys := []string{"event " + event}
	if l := f.now.letter(event); l != nil && l.Kind == "received" && l.Message != "" {
		keys = append(keys, "message "+l.Inbox+"/"+l.Message)
	}
	return keys
}

func oneGeneration(f *facts) error {
	for _, c := range f.newCalls() {
		w := f.now.workflow(c.Workflow)
		if w == nil || w.Run != c.Run || c.Gen != 0 && w.Gen != c.Gen {
			return fmt.Errorf("step call %d of workflow %s committed in generation %d, the row is at %+v", c.ID, c.Workflow, c.Gen, w)
		}
	}
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		if was := f.before.workflow(w.ID); was != nil && was.Gen > w.Gen {
			return fmt.Errorf("workflow %s: generation %d after %d", w.ID, w.Gen, was.Gen)
		}
	}
	return nil
}

func oneSendAStep(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		was := f.before.workflow(w.ID)
		if was != nil && was.Run == w.Run && (w.Step < was.Step || w.Step > was.Step+1) {
			return fmt.Errorf("workflow %s: step %d after %d", w.ID, w.Step, was.Step)
		}
		for step := int64(1); step <= w.Step; step++ {
			if f.now.send(w.ID, w.Run, step) == nil {
				return fmt.Errorf("workflow %s: step %d of %d has no send", w.ID, step, w.Step)
			}
		}
		if f.now.send(w.ID, w.Run, w.Step+1) != nil {
			return fmt.Errorf("workflow %s: a send lies beyond step %d", w.ID, w.Step)
		}
	}
	for _, was := range f.before.sends {
		s := f.now.send(was.Workflow, was.Run, was.Step)
		if s == nil || s.Key != was.Key || s.Hash != was.Hash {
			return fmt.Errorf("the send of workflow %s, step %d: %+v became %+v", was.Workflow, was.Step, was, s)
		}
	}
	return unique(f.now.sends, func(s send) string { return s.Key })
}

func sentOnce(f *facts) error {
	if len(f.breaches) > 0 {
		return fmt.Errorf("at the provider: %s", strings.Join(f.breaches, "; "))
	}
	for _, d := range f.record {
		s := f.now.sendOf(d.Key)
		switch {
		case d.Conflict > 0:
			return fmt.Errorf("key %s came with another body", d.Key)
		case s == nil:
			return fmt.Errorf("key %s left and is nowhere planned", d.Key)
		case s.Hash != hashOf(d.Body):
			return fmt.Errorf("key %s: other bytes left than are stored", d.Key)
		case s.State == "dropped":
			return fmt.Errorf("key %s left and counts as dropped", d.Key)
		}
	}
	for i := range f.now.sends {
		s := &f.now.sends[i]
		was := f.before.send(s.Workflow, s.Run, s.Step)
		w := f.now.live(s.Workflow, s.Run)
		if s.State == "unknown" && was != nil && was.State != "unknown" && w != nil && w.Step == s.Step && w.status() != resume.StatusNeedsReview {
			return fmt.Errorf("workflow %s is %s, and what became of its mail is unknown", w.ID, w.Status)
		}
	}
	return nil
}

func waitsForWhatLeft(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		s := f.now.send(w.ID, w.Run, w.Step)
		if s == nil || w.terminal() {
			continue
		}
		open := s.State == "planned" || s.State == "held"
		closed := w.status() == resume.StatusWaiting || w.status() == resume.StatusRunnable || w.status() == resume.StatusRunning
		switch {
		case open && closed:
			return fmt.Errorf("workflow %s is %s, and its mail of step %d is %s", w.ID, w.Status, s.Step, s.State)
		case w.status() == resume.StatusSending && s.State != "planned", w.status() == resume.StatusAwaitingApproval && s.State != "held":
			return fmt.Errorf("workflow %s is %s, and its mail of step %d is %s", w.ID, w.Status, s.Step, s.State)
		case s.State == "accepted" && !f.left(s.Key):
			return fmt.Errorf("workflow %s: step %d counts as accepted, and never left", w.ID, s.Step)
		}
	}
	return nil
}

func (f *facts) left(key string) bool {
	for _, d := range f.record {
		if d.Key == key {
			return d.MessageID != ""
		}
	}
	return false
}

func consumedWasShown(f *facts) error {
	for i := range f.now.mail {
		l := &f.now.mail[i]
		if (l.Place == "review" || l.Place == "settled") && l.Reason == "" {
			return fmt.Errorf("event %s is %s without a reason", l.EventID, l.Place)
		}
		if l.Place != "input" || l.ConsumedBy == 0 {
			continue
		}
		shown := false
		for _, c := range f.now.calls {
			shown = shown || c.Workflow == l.Workflow && c.Run == l.Run && c.took(l.EventID)
		}
		if !shown {
			return fmt.Errorf("event %s was consumed in generation %d of workflow %s, and no committed step run was given it", l.EventID, l.ConsumedBy, l.Workflow)
		}
	}
	for _, c := range f.now.calls {
		for event := range strings.FieldsSeq(c.Inputs) {
			if l := f.now.letter(event); l == nil || l.Place != "input" || l.ConsumedBy == 0 {
				return fmt.Errorf("event %s was given to the committed step call %d, and is not consumed: %+v", event, c.ID, l)
			}
		}
	}
	return nil
}

func onePlace(f *facts) error {
	for id := range f.taken {
		if ev := f.fed[id]; f.used(ev) && f.now.letter(id) == nil && !f.isParked(id) {
			return fmt.Errorf("event %s (%s) was acknowledged, and is nowhere", id, ev.Kind)
		}
	}
	pending := map[string]int64{}
	for i := range f.now.mail {
		l := &f.now.mail[i]
		if err := l.wellPlaced(); err != nil {
			return err
		}
		if f.isParked(l.EventID) {
			return fmt.Errorf("event %s is parked and %s at once", l.EventID, l.Place)
		}
		if !l.pending() {
			continue
		}
		if f.now.live(l.Workflow, l.Run) == nil {
			return fmt.Errorf("event %s is pending with workflow %s, of which that run is over", l.EventID, l.Workflow)
		}
		pending[l.Workflow]++
	}
	for i := range f.now.workflows {
		if w := &f.now.workflows[i]; w.Arrived-w.Consumed != pending[w.ID] {
			return fmt.Errorf("workflow %s (%s) counts %d arrived, %d consumed, and has %d pending", w.ID, w.Status, w.Arrived, w.Consumed, pending[w.ID])
		}
	}
	return nil
}

func (l *letter) wellPlaced() error {
	ok := false
	switch l.Place {
	case "unplaced", "review":
		ok = l.Workflow == "" && l.ConsumedBy == 0
	case "input":
		ok = l.Workflow != "" && l.Run != "" && l.AliasOf == 0
	case "settled":
		ok = l.ConsumedBy == 0
	}
	if !ok {
		return fmt.Errorf("event %s is in no proper place: %+v", l.EventID, *l)
	}
	return nil
}

func (f *facts) isParked(event string) bool {
	for _, p := range f.now.parked {
		if p.EventID == event {
			return true
		}
	}
	return false
}

func rightOwner(f *facts) error {
	for i := range f.now.mail {
		l := &f.now.mail[i]
		was := f.before.letter(l.EventID)
		if l.Place != "input" || was != nil && was.Place == "input" || l.Kind != "received" {
			continue
		}
		if err := f.placedRightly(l); err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) placedRightly(l *letter) error {
	owner, run := f.now.owner(l.Inbox, l.Thread)
	if l.MatchedBy != "person" && (owner != l.Workflow || run != l.Run) {
		return fmt.Errorf("event %s went to workflow %s by its %s, and the thread is workflow %s's", l.EventID, l.Workflow, l.MatchedBy, owner)
	}
	if l.MatchedBy != "sender" {
		return nil
	}
	from := f.sender(l.Message)
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		if w.Inbox == l.Inbox && w.Counterparty == from && !w.terminal() && w.ID != l.Workflow {
			return fmt.Errorf("event %s went to workflow %s by its sender, who may as well mean workflow %s (%s)", l.EventID, l.Workflow, w.ID, w.Status)
		}
	}
	return nil
}

func terminalStays(f *facts) error {
	for i := range f.before.workflows {
		was := &f.before.workflows[i]
		w := f.now.workflow(was.ID)
		if !was.terminal() || w == nil || w.Run != was.Run || w.Status == was.Status {
			continue
		}
		if f.now.happened(w.ID, w.Run, "reopened") == f.before.happened(w.ID, w.Run, "reopened") {
			return fmt.Errorf("workflow %s was %s and is %s, and nobody reopened it", w.ID, was.Status, w.Status)
		}
	}
	for _, c := range f.newCalls() {
		was := f.before.workflow(c.Workflow)
		if c.TimedOut != 0 && was != nil && was.Arrived > was.Consumed {
			return fmt.Errorf("step call %d of workflow %s committed a timeout over %d pending inputs", c.ID, c.Workflow, was.Arrived-was.Consumed)
		}
	}
	return nil
}

func together(f *facts) error {
	ran := map[[2]string]int64{}
	for _, c := range f.now.calls {
		ran[[2]string{c.Workflow, c.Run}]++
	}
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		steps, joined := f.now.happened(w.ID, w.Run, "step"), ran[[2]string{w.ID, w.Run}]
		if steps != joined {
			return fmt.Errorf("workflow %s: %d step runs are committed, and what the step wrote with them is %d", w.ID, steps, joined)
		}
	}
	return nil
}

func durable(f *facts) error {
	known := map[string]bool{}
	for _, s := range f.now.seen {
		known[s.EventID] = true
	}
	for id := range f.taken {
		if !known[id] && !f.isParked(id) {
			return fmt.Errorf("event %s was acknowledged, and is not stored", id)
		}
	}
	return nil
}
