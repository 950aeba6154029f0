package resumetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/replywake/replywake/resume"
)

func nobodySleeps(f *facts) error {
	for i := range f.now.workflows {
		if w := &f.now.workflows[i]; w.status() == resume.StatusWaiting && w.Arrived > w.Consumed {
			return fmt.Errorf("workflow %s waits with %d inputs pending", w.ID, w.Arrived-w.Consumed)
		}
	}
	return nil
}

func inputsAreTaken(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		person := w.status() == resume.StatusNeedsReview || w.status() == resume.StatusAwaitingApproval
		if w.Arrived > w.Consumed && !person {
			return fmt.Errorf("workflow %s is %s with %d inputs pending", w.ID, w.Status, w.Arrived-w.Consumed)
		}
	}
	return nil
}

func sendsAreDue(f *facts) error {
	for i := range f.now.sends {
		if s := &f.now.sends[i]; s.State == "planned" && (s.Due == 0 || s.Bytes == 0) {
			return fmt.Errorf("the mail of workflow %s, step %d, is planned, and will never be tried: %+v", s.Workflow, s.Step, *s)
		}
	}
	return nil
}

func sendsEnd(f *facts) error {
	for i := range f.now.sends {
		if s := &f.now.sends[i]; s.State == "planned" {
			return fmt.Errorf("the mail of workflow %s, step %d, is still planned", s.Workflow, s.Step)
		}
	}
	for i := range f.now.workflows {
		if w := &f.now.workflows[i]; w.status() == resume.StatusSending {
			return fmt.Errorf("workflow %s is still sending", w.ID)
		}
	}
	return nil
}

func mailIsDue(f *facts) error {
	for i := range f.now.mail {
		l := &f.now.mail[i]
		if l.Place == "unplaced" && (l.Due == 0 || l.Due > f.now.in(24*time.Hour)) {
			return fmt.Errorf("event %s is unplaced, and nobody looks at it within a day", l.EventID)
		}
	}
	return nil
}

// in is the database's clock d from now.
func (t *tables) in(d time.Duration) micros { return t.clock + micros(d.Microseconds()) }

func mailIsPlaced(f *facts) error {
	for i := range f.now.mail {
		l := &f.now.mail[i]
		if l.Place == "unplaced" {
			return fmt.Errorf("event %s is still unplaced", l.EventID)
		}
		ofThread := l.Reason == resume.ReasonNoCandidate || l.Reason == resume.ReasonSeveralCandidates || l.Reason == resume.ReasonLateReply
		if l.Place != "review" || !ofThread || l.Kind != "received" || l.Decision != "" {
			continue
		}
		// After a reopening late replies stay with the person, who binds those that
		// count; and so does what a person took back of a thread that stays the
		// workflow's by another bind.
		id, run := f.now.owner(l.Inbox, l.Thread)
		if f.now.live(id, run) != nil && f.now.happened(id, run, "reopened")+f.now.happened(id, run, "unbound") == 0 {
			return fmt.Errorf("event %s is before a person (%s), and its thread is workflow %s's", l.EventID, l.Reason, id)
		}
	}
	return nil
}

// leasesEnd: that a clean stop gives a lease back at once is a scenario of its
// own (B35).
func leasesEnd(f *facts) error {
	lease := cmp.Or(f.config.Lease, 30*time.Second)
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		running := w.status() == resume.StatusRunning
		if running != (w.Owner != "") || running && (w.Due == 0 || w.Due > f.now.in(lease)) {
			return fmt.Errorf("workflow %s is %s, of owner %q, until %d at the clock's %d", w.ID, w.Status, w.Owner, w.Due, f.now.clock)
		}
	}
	return nil
}

func nothingLeft(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		if w.status() == resume.StatusRunning || w.status() == resume.StatusRunnable {
			return fmt.Errorf("workflow %s is still %s", w.ID, w.Status)
		}
	}
	for _, ev := range f.now.missing(f.events) {
		if !f.floored(ev.ID) {
			return fmt.Errorf("event %s (%s) never arrived", ev.ID, ev.Type)
		}
	}
	return nil
}

// pollsFindIt: no explored run has a NOTIFY that anybody hears, so at rest all
// was found by looking. How soon a poll looks, and that who listens again scans
// again, are tests of package resume with a listener's real connection.
func pollsFindIt(f *facts) error {
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		acts := w.status() == resume.StatusRunnable || w.status() == resume.StatusRunning
		waits := w.status() == resume.StatusWaiting && w.Deadline != 0
		if (acts || waits) && w.Due == 0 {
			return fmt.Errorf("workflow %s is %s, and no poll would find it", w.ID, w.Status)
		}
		if waits && w.Due > w.Deadline && w.Due > f.now.in(time.Minute) {
			return fmt.Errorf("workflow %s is found long after its deadline", w.ID)
		}
	}
	return nil
}

// shortestBackoff is less than any wait after a failure. Where a transaction
// stands still for longer, its wait may be over when it commits.
const shortestBackoff = 400 * time.Millisecond

// failuresAreBounded: that attempts end at all is also what Settle's own bound
// says, and that a send or a mail delays no other are scenarios of their own
// (B24, B25).
func failuresAreBounded(f *facts) error {
	most := int64(cmp.Or(f.config.Attempts, 10))
	for i := range f.now.workflows {
		w := &f.now.workflows[i]
		if (w.status() == resume.StatusRunnable || w.status() == resume.StatusRunning) && w.Attempts >= most {
			return fmt.Errorf("workflow %s is %s after %d failed runs, and nobody was asked", w.ID, w.Status, w.Attempts)
		}
		was := f.before.workflow(w.ID)
		failed := was != nil && was.Run == w.Run && w.Attempts > was.Attempts && was.status() == resume.StatusRunning
		quick := was != nil && f.now.clock-was.Updated < micros(shortestBackoff.Microseconds())
		if failed && quick && !f.loose && w.status() == resume.StatusRunnable && w.Due <= f.now.clock {
			return fmt.Errorf("workflow %s failed and is first in line again", w.ID)
		}
	}
	return nil
}

// clocksAgree: that waits of days hold over restarts and changes of the zone
// is then the database's arithmetic; package resume's tests run in a zone of
// their own.
func clocksAgree(f *facts) error {
	if len(f.now.zoneless) > 0 {
		return fmt.Errorf("times without a zone: %s", strings.Join(f.now.zoneless, ", "))
	}
	for _, c := range f.newCalls() {
		was := f.before.workflow(c.Workflow)
		if c.TimedOut != 0 && !f.loose && was != nil && (was.Deadline == 0 || was.Deadline > f.now.clock) {
			return fmt.Errorf("step call %d of workflow %s is for a deadline at %d, and it is %d", c.ID, c.Workflow, was.Deadline, f.now.clock)
		}
	}
	return nil
}

func deadlinesFire(f *facts) error {
	for i := range f.now.workflows {
		if w := &f.now.workflows[i]; w.status() == resume.StatusWaiting && w.Deadline != 0 && w.Deadline <= f.now.clock {
			return fmt.Errorf("workflow %s waits, and its deadline has passed", w.ID)
		}
	}
	return nil
}

// mostPruned is the largest batch of a pruning: dedupe's.
const mostPruned = 1000

// keptForReplays: an ID that was forgotten is S11's. Rows of the mailbox, of
// sends and of threads stay for good.
func keptForReplays(f *facts) error {
	for i := range f.before.mail {
		if l := &f.before.mail[i]; f.now.letter(l.EventID) == nil {
			return fmt.Errorf("event %s has left the mailbox", l.EventID)
		}
	}
	retain := cmp.Or(f.config.Retain, 90*24*time.Hour)
	for i := range f.before.workflows {
		was := &f.before.workflows[i]
		if f.now.workflow(was.ID) == nil && (!was.terminal() || was.Finished > f.now.in(-retain)) && !f.loose {
			return fmt.Errorf("workflow %s (%s) was dropped before its time", was.ID, was.Status)
		}
	}
	for i := range f.before.sends {
		was := &f.before.sends[i]
		if s := f.now.send(was.Workflow, was.Run, was.Step); s == nil || was.Bytes > 0 && s.Bytes == 0 && s.State == "planned" {
			return fmt.Errorf("the mail of workflow %s, step %d, is gone", was.Workflow, was.Step)
		}
	}
	if gone := len(f.before.seen) - len(f.now.seen); gone > mostPruned && !f.loose {
		return fmt.Errorf("%d IDs were forgotten in one commit", gone)
	}
	return nil
}

// pollsAreIndexed looks at the database's plans. That they are kept with a
// million rows, and that pruning blocks no claim, is measured (bench).
func pollsAreIndexed(f *facts) error {
	for index, plan := range f.polls {
		if !strings.Contains(plan, index) {
			return fmt.Errorf("a poll does not use %s: %s", index, plan)
		}
	}
	return nil
}
