package resumetest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replywake/replywake/resume"
)

// Several orders may have several right outcomes. These say which.

// either wants one of some checks to hold.
func either(checks ...func(*world) error) func(*world) error {
	return func(w *world) error {
		var faults []error
		for _, check := range checks {
			err := check(w)
			if err == nil {
				return nil
			}
			faults = append(faults, err)
		}
		return fmt.Errorf("none of %d outcomes: %w", len(checks), errors.Join(faults...))
	}
}

// unanswered wants no mail that names what came, unless a crash let it be worked on.
func unanswered(w *world) error {
	if w.Crashed() { // it may have been answered before the other actor came again
		return nil
	}
	for _, s := range w.Provider().Sends() {
		if s.Subject == "ack" {
			return fmt.Errorf("it was answered: %s", s.Text)
		}
	}
	return nil
}

// places wants the messages that came, in their order, to be in one of some
// places: with the workflow that was given each, "queue", or "settled". After a
// crash any workflow or the queue is right; nobody's is not.
func places(allowed ...string) func(*world) error {
	return func(w *world) error {
		got, err := placesOf(w)
		right := slices.Contains(allowed, got)
		if w.Crashed() {
			right = !strings.Contains(got, "settled") || strings.Contains(strings.Join(allowed, " "), "settled")
		}
		if err == nil && !right {
			err = fmt.Errorf("the mail is in %q, want one of %q", got, allowed)
		}
		return err
	}
}

func placesOf(w *world) (string, error) {
	where := map[string]string{}
	items, err := w.Engine().Queue(w.Context(), "", 0)
	if err != nil {
		return "", err
	}
	for _, item := range items {
		where[item.Message] = "queue"
	}
	workflows, err := w.Engine().Workflows(w.Context(), "", "", 0)
	if err != nil {
		return "", err
	}
	for _, row := range workflows {
		seen, err := w.Engine().Seen(w.Context(), row.ID)
		if err != nil {
			return "", err
		}
		for _, message := range seen {
			if where[message] != "" {
				return "", fmt.Errorf("message %s is in two places: %s and %s", message, where[message], row.ID)
			}
			where[message] = row.ID
		}
	}
	var out []string
	for _, m := range w.Provider().Messages("") {
		if m.Outbound {
			continue
		}
		place := where[m.ID]
		if place == "" {
			place = "settled"
		}
		out = append(out, place)
	}
	return strings.Join(out, " "), nil
}

// given wants a workflow to have been given so many messages, and none to be
// pending.
func given(id string, n int) func(*world) error {
	return func(w *world) error {
		row, err := w.Engine().Workflow(w.Context(), id)
		if err != nil {
			return err
		}
		seen, err := w.Engine().Seen(w.Context(), id)
		if err == nil && (len(seen) != n || row.Pending != 0) {
			err = fmt.Errorf("workflow %s was given %v, and %d are pending; want %d given", id, seen, row.Pending, n)
		}
		return err
	}
}

// decided wants people's decisions on a message to be these, in their order.
func decided(n int, allowed ...string) func(*world) error {
	return func(w *world) error {
		moments, err := w.Engine().Decisions(w.Context(), received(w, n))
		var got []string
		for _, m := range moments {
			got = append(got, m.What)
		}
		if line := strings.Join(got, " "); err == nil && !slices.Contains(allowed, line) {
			err = fmt.Errorf("people decided %q, want one of %q", line, allowed)
		}
		return err
	}
}

// whereDecided wants mails of one thread where people last put each: with the
// workflow of the last bind; one on which nobody's decision stands with one that
// another was bound to, or in the queue.
func whereDecided(mails ...int) func(*world) error {
	return func(w *world) error {
		got, err := placesOf(w)
		if err != nil {
			return err
		}
		places := strings.Fields(got)
		bound := map[int]string{}
		along := []string{"queue"}
		for _, n := range mails {
			moments, err := w.Engine().Decisions(w.Context(), received(w, n))
			if err != nil {
				return err
			}
			for _, m := range moments {
				id, _, _ := strings.Cut(strings.TrimPrefix(m.Detail, "to "), " ")
				switch m.What {
				case "bound":
					bound[n] = id
					along = append(along, id) // also if that is undone: another run may have it by then
				case "unbound":
					delete(bound, n)
				}
			}
		}
		for _, n := range mails {
			if to := bound[n]; to != "" && places[n] != to || to == "" && !slices.Contains(along, places[n]) {
				return fmt.Errorf("mail %d is in %q of %q, people put it to %q", n, places[n], got, to)
			}
		}
		return nil
	}
}

// askedAnew wants the present life of w1 to have sent its question once, and
// to wait.
func askedAnew(w *world) error {
	row, err := w.Engine().Workflow(w.Context(), "w1")
	if err != nil {
		return err
	}
	left := 0
	for _, s := range w.Provider().Sends() {
		if s.Subject != "ack" && s.MessageID != "" && strings.HasPrefix(s.Key, row.Run) {
			left++
		}
	}
	if left != 1 || row.Status != resume.StatusWaiting {
		return fmt.Errorf("this life asked %d times, and is %s", left, row.Status)
	}
	return nil
}
