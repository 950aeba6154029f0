package resumetest

import (
	"fmt"

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
		// After a reopening late replies stay with the person, who binds those that count.
		id, run := f.now.owner(l.Inbox, l.Thread)
		if f.now.live(id, run) != nil && f.now.happened(id, run, "reopened") == 0 {
			return fmt.Errorf("event %s is before a person (%s), and its thread is workflow %s's", l.EventID, l.Reason, id)
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
	if gone := f.now.missing(f.events); len(gone) > 0 {
		return fmt.Errorf("event %s (%s) never arrived", gone[0].ID, gone[0].Type)
	}
	return nil
}
