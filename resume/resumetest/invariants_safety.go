package resumetest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

func oneRow(f *facts) error {
	events := unique(f.now.mail, func(l letter) string { return l.Stream + "/" + l.EventID })
	messages := unique(f.now.mail, func(l letter) string {
		if l.Kind != "received" || l.AliasOf != 0 || l.Message == "" {
			return ""
		}
		return l.Stream + "/" + l.Inbox + "/" + l.Message
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
		if c.Gen != 0 && (w == nil || w.Run != c.Run || w.Gen != c.Gen) {
			return fmt.Errorf("step call %d of workflow %s committed in generation %d, the row is at %+v", c.ID, c.Workflow, c.Gen, w)
		}
	}
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		if was := f.before.workflow(w.ID); was != nil && was.Gen > w.Gen && (!f.loose || was.Run == w.Run) {
			return fmt.Errorf("workflow %s: generation %d after %d", w.ID, w.Gen, was.Gen)
		}
	}
	for _, h := range f.stale {
		if what := f.before.changed(f.now); what != "" {
			return fmt.Errorf("a run of workflow %s in generation %d, which is over, changed %s", h.id, h.gen, what)
		}
	}
	return nil
}

// changed names a table of the engine's that is not the same in now.
func (t *tables) changed(now *tables) string {
	for name, rows := range map[string][2]any{
		"workflows": {t.workflows, now.workflows}, "threads": {t.threads, now.threads}, "mail": {t.mail, now.mail},
		"sends": {t.sends, now.sends}, "history": {t.history, now.history},
	} {
		if !reflect.DeepEqual(rows[0], rows[1]) {
			return name
		}
	}
	return ""
}

func oneSendAStep(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		was := f.before.workflow(w.ID)
		if was != nil && was.Run == w.Run && (w.Step < was.Step || w.Step > was.Step+1 && !f.loose) {
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
	if err := f.withinWindow(); err != nil {
		return err
	}
	for i := range f.now.sends {
		s := &f.now.sends[i]
		w := f.now.live(s.Workflow, s.Run)
		if s.State == "unknown" && w != nil && w.Step == s.Step && w.status() != resume.StatusNeedsReview && !f.now.movedOn(w) {
			return fmt.Errorf("workflow %s is %s, and what became of its mail is unknown", w.ID, w.Status)
		}
	}
	return nil
}

// withinWindow: no request comes for a send whose first one, or whose first
// attempt, is longer ago than a key is replayed. The attempt may be under way
// for a while.
func (f *facts) withinWindow() error {
	const underWay = time.Minute
	window := cmp.Or(f.config.ReplayWindow, 29*24*time.Hour) + underWay
	for _, r := range f.requests {
		if r.IdempotencyKey == "" {
			continue
		}
		at := micros(r.At.Add(-f.behind).UnixMicro())
		if s := f.now.sendOf(r.IdempotencyKey); s != nil && s.First != 0 && at-s.First > micros(window.Microseconds()) {
			return fmt.Errorf("key %s came again after %s", s.Key, time.Duration(at-s.First)*time.Microsecond)
		}
	}
	return nil
}

// movedOn says whether a person sent the workflow on after its last review or
// cancellation.
func (t *tables) movedOn(w *workflow) bool {
	last := func(what string) int64 { return t.lines(w.ID, w.Run, what).Last }
	return max(last("run_now"), last("reopened")) > max(last("review"), last("needs_review"), last("canceled"))
}

func waitsForWhatLeft(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		s := f.now.send(w.ID, w.Run, w.Step)
		if s == nil || w.status() == resume.StatusCanceled {
			continue
		}
		open := s.State == "planned" || s.State == "held"
		settled := w.status() == resume.StatusSending && s.State != "planned" || w.status() == resume.StatusAwaitingApproval && s.State != "held"
		asleep := w.status() == resume.StatusWaiting && s.State != "accepted" && !f.now.knows(w, s) && !f.now.movedOn(w)
		if open && resting(w.status()) || settled || asleep {
			return fmt.Errorf("workflow %s is %s, and its mail of step %d is %s", w.ID, w.Status, s.Step, s.State)
		}
		if s.State == "accepted" && !f.left(s.Key) {
			return fmt.Errorf("workflow %s: step %d counts as accepted, and never left", w.ID, s.Step)
		}
	}
	return nil
}

// resting says whether a workflow has nothing under way at the provider.
func resting(s resume.Status) bool {
	return s == resume.StatusWaiting || s == resume.StatusRunnable || s == resume.StatusRunning || s == resume.StatusDone
}

// knows says whether the step has been given what became of a send that will
// not leave.
func (t *tables) knows(w *workflow, s *send) bool {
	return s.State == "failed" && slices.ContainsFunc(t.mail, func(l letter) bool {
		about := l.EventID == "send:"+s.Key || l.Kind == string(events.KindApproval) && l.Approval == s.Approval
		return about && l.Workflow == w.ID && l.Run == w.Run && l.ConsumedBy != 0
	})
}

func (f *facts) left(key string) bool {
	for _, d := range f.later {
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
		if err := f.wellPlaced(l); err != nil {
			return err
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

func (f *facts) wellPlaced(l *letter) error {
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
	if f.isParked(l.EventID) {
		return fmt.Errorf("event %s is parked and %s at once", l.EventID, l.Place)
	}
	if _, fed := f.fed[l.EventID]; f.explored && !fed && l.Kind != "signal" && l.Kind != "send_error" {
		return fmt.Errorf("event %s stands in the mailbox, and nobody brought it", l.EventID)
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
		if l.Place != "input" || l.Kind != "received" {
			continue
		}
		was := f.before.letter(l.EventID)
		if fresh := was == nil || was.Place != "input"; fresh || l.pending() {
			if err := f.placedRightly(l, fresh && !f.loose); err != nil {
				return err
			}
		}
	}
	for _, was := range f.before.threads {
		if err := f.ownerStays(was); err != nil {
			return err
		}
	}
	return unique(f.now.threads, func(o thread) string { return o.Stream + "/" + o.Inbox + "/" + o.Thread })
}

// placedRightly looks at an input. That nobody else could be meant holds at
// the commit that placed it by its sender.
func (f *facts) placedRightly(l *letter, now bool) error {
	owner, run := f.now.owner(l.Inbox, l.Thread)
	if l.MatchedBy != "person" && (owner != l.Workflow || run != l.Run) && (now || l.pending()) {
		return fmt.Errorf("event %s is workflow %s's by its %s, and the thread is workflow %s's", l.EventID, l.Workflow, l.MatchedBy, owner)
	}
	if l.MatchedBy != "sender" || !now {
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

// ownerStays: a thread leaves a workflow that lives only where a person takes
// back that it was given to it.
func (f *facts) ownerStays(was thread) error {
	owner, run := f.now.owner(was.Inbox, was.Thread)
	if owner == was.Workflow && run == was.Run || f.before.live(was.Workflow, was.Run) == nil || f.now.live(was.Workflow, was.Run) == nil {
		return nil
	}
	again := f.now.happened(was.Workflow, was.Run, "reopened") > f.before.happened(was.Workflow, was.Run, "reopened")
	undone := f.now.decisions("unbound") > f.before.decisions("unbound")
	if was.MatchedBy == "person" && undone || again && f.loose {
		return nil
	}
	return fmt.Errorf("thread %s was workflow %s's, which lives, and is now %q's", was.Thread, was.Workflow, owner)
}

// decisions counts what people did, over all workflows.
func (t *tables) decisions(what string) (n int64) {
	for _, h := range t.history {
		if h.What == what {
			n += h.N
		}
	}
	return n
}

func terminalStays(f *facts) error {
	for i := range f.before.workflows {
		was := &f.before.workflows[i]
		w := f.now.workflow(was.ID)
		switch {
		case w == nil || w.Run == was.Run && w.Status == was.Status:
		case w.Run != was.Run:
			if !was.terminal() && !f.loose {
				return fmt.Errorf("workflow %s began anew while it was %s", w.ID, was.Status)
			}
		case was.terminal() && f.now.happened(w.ID, w.Run, "reopened") == f.before.happened(w.ID, w.Run, "reopened"):
			return fmt.Errorf("workflow %s was %s and is %s, and nobody reopened it", w.ID, was.Status, w.Status)
		}
	}
	for _, c := range f.newCalls() {
		was := f.before.workflow(c.Workflow)
		if c.TimedOut != 0 && was != nil && was.Arrived > was.Consumed && !f.loose {
			return fmt.Errorf("step call %d of workflow %s committed a timeout over %d pending inputs", c.ID, c.Workflow, was.Arrived-was.Consumed)
		}
	}
	return firesOnce(f.now.calls)
}

// firesOnce: of the deadlines of a run since its last input each is the next.
func firesOnce(calls []call) error {
	fired := map[string]int64{}
	for _, c := range calls {
		switch {
		case c.TimedOut != 0:
			if fired[c.Run]++; c.Timeouts != fired[c.Run] {
				return fmt.Errorf("step call %d of workflow %s is for deadline %d, and %d have fired", c.ID, c.Workflow, c.Timeouts, fired[c.Run])
			}
		case strings.TrimSpace(c.Inputs) != "":
			fired[c.Run] = 0
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
		if steps != joined && !f.now.pruned(w) {
			return fmt.Errorf("workflow %s: %d step runs are committed, and what the step wrote with them is %d", w.ID, steps, joined)
		}
	}
	if !f.explored {
		return nil
	}
	return first(f.startsTogether(), f.signalsTogether())
}

// startsTogether: as many runs began in this commit as the user wrote of.
func (f *facts) startsTogether() error {
	began := map[string]int64{} // more than the user wrote
	for _, h := range f.now.history {
		if h.What == "started" {
			began[h.Workflow] += max(h.N-f.before.happened(h.Workflow, h.Run, "started"), 0)
		}
	}
	for _, j := range f.now.joined {
		began[j.Workflow] -= j.starts()
	}
	for _, j := range f.before.joined {
		began[j.Workflow] += j.starts()
	}
	for id, n := range began {
		if n != 0 {
			return fmt.Errorf("workflow %s began, and what the user wrote with that is not so often there: %+d", id, n)
		}
	}
	return nil
}

func (j joined) starts() int64 {
	if j.What == "start" {
		return 1
	}
	return 0
}

func (f *facts) signalsTogether() error {
	written, placed := map[string]bool{}, map[string]bool{}
	for _, j := range f.now.joined {
		if j.What == "signal" {
			written[j.Name] = true
		}
	}
	for _, l := range f.now.mail {
		if l.Kind == "signal" {
			placed[strings.TrimPrefix(l.EventID, "signal:"+l.Run+":")] = true
		}
	}
	if !reflect.DeepEqual(written, placed) {
		return fmt.Errorf("the signals %v stand in the mailbox, and what the user wrote is of %v", placed, written)
	}
	return nil
}

func durable(f *facts) error {
	known := map[string]bool{}
	for _, s := range f.now.seen {
		known[s.EventID] = true
	}
	for id := range f.taken {
		if !known[id] && !f.isParked(id) && !f.floored(id) {
			return fmt.Errorf("event %s was acknowledged, and is not stored", id)
		}
	}
	return nil
}

// floored says whether an ID could be forgotten: a floor lies over its
// sequence, or over the time at which it was pushed.
func (f *facts) floored(id string) bool {
	ev := f.fed[id]
	inbox, sequence, at := ev.Inbox, int64(ev.Sequence), ev.OccurredAt
	for _, e := range f.events {
		if e.ID == id {
			inbox, sequence, at = e.Inbox, e.Sequence, e.At
		}
	}
	moment := micros(at.Add(-f.behind).UnixMicro())
	return slices.ContainsFunc(f.now.floors, func(l floor) bool {
		swept := sequence > 0 && l.SweptFrom <= sequence && sequence <= l.SweptUntil
		pushed := l.From != 0 && (at.IsZero() || l.From <= moment && moment <= l.Until)
		return l.Inbox == inbox && (swept || pushed)
	})
}
