package resume

import "time"

// Status is where a workflow stands.
type Status string

// The statuses of a workflow. Done and Canceled are terminal: nothing leaves
// them but Reopen.
const (
	StatusRunnable         Status = "runnable"          // a worker may take it once it is due
	StatusRunning          Status = "running"           // a worker holds it under a lease
	StatusSending          Status = "sending"           // its mail has no outcome yet
	StatusAwaitingApproval Status = "awaiting_approval" // its mail is held for a person at the provider
	StatusWaiting          Status = "waiting"           // for an input or its deadline
	StatusNeedsReview      Status = "needs_review"      // for a person
	StatusDone             Status = "done"
	StatusCanceled         Status = "canceled"
)

// Terminal says whether the workflow is over.
func (s Status) Terminal() bool { return s == StatusDone || s == StatusCanceled }

// state is what decisions about a workflow are made from: columns of its own
// row, read under its lock. The functions below are the whole status machine.
// They are pure: each takes the state and the database's time and returns the
// state to store.
type state struct {
	Status   Status
	Step     int64 // sends planned
	Arrived  int64 // inputs placed
	Consumed int64 // inputs consumed, or taken away
	Gen      int64 // raised by every claim; older generations may write nothing
	Due      time.Time
	Deadline time.Time
	Wait     time.Duration // what the deadline is counted from a send's acceptance
	Finish   bool          // done as soon as nothing is pending
	Kick     bool          // run the step even without inputs
	TimedOut bool          // the present run is the deadline's
	Timeouts int64         // deadlines fired since the last input
	Attempts int64         // runs failed in a row
	Stalls   int64         // runs in a row that the provider did not let begin
	Begun    bool          // after a failed run: this one has come to the step
	Error    string
}

func (s state) pending() bool { return s.Arrived > s.Consumed }

// release is the only way to rest. It looks at what arrived meanwhile.
func (s state) release(now time.Time) state {
	s.TimedOut = false
	switch {
	case s.pending() || s.Kick:
		s.Status, s.Due = StatusRunnable, now // Finish stays, for a run that takes nothing
	case s.Finish:
		s.Status, s.Due, s.Deadline = StatusDone, time.Time{}, time.Time{}
	default:
		s.Status, s.Due = StatusWaiting, s.Deadline
	}
	return s
}

// arrive places n inputs that may be taken from at on.
func (s state) arrive(n int64, at time.Time) state {
	s.Arrived += n
	switch {
	case s.Status == StatusWaiting:
		s.Status, s.Due = StatusRunnable, at
	case s.Status == StatusRunnable && s.Attempts == 0 && at.Before(s.Due):
		s.Due = at // no earlier where a failing step is backing off
	}
	return s
}

// takeAway removes n pending inputs outside a run: undone, or judged.
func (s state) takeAway(n int64, now time.Time) state {
	s.Consumed += n
	if s.Status == StatusRunnable && s.Attempts == 0 {
		return s.release(now)
	}
	return s
}

// recheck is how long a due deadline waits for receiving to become current.
const recheck = 2 * time.Second

// claim gives the workflow to a worker for lease; false if it stays where it
// is. through is the moment up to which everything has been received: a
// deadline does not fire into an outage. maxAttempts lost leases are a step
// that kills its worker; from the second on those do not count whose run had not
// come to the step: the process was killed, by whomever.
func (s state) claim(now, through time.Time, lease time.Duration, maxAttempts int64) (state, bool) {
	expired := !s.Deadline.IsZero() && !s.Deadline.After(now)
	current := !through.Before(s.Deadline)
	switch {
	case s.Status == StatusRunning:
		if s.Attempts == 0 || s.Begun {
			s.Attempts++
		}
		if s.Attempts >= maxAttempts {
			return s.review("the lease ran out in every attempt"), false
		}
	case s.Status == StatusWaiting && !expired:
		s.Due = s.Deadline
		return s, false
	case s.Status == StatusWaiting && !current:
		s.Due = now.Add(recheck)
		return s, false
	case s.Status != StatusWaiting && s.Status != StatusRunnable:
		s.Due = time.Time{}
		return s, false
	}
	s.TimedOut, s.Begun = expired && current, false
	s.Status, s.Gen, s.Due = StatusRunning, s.Gen+1, now.Add(lease)
	return s, true
}

// yield ends a run that had nothing to do, or nothing it could do before next.
func (s state) yield(now, next time.Time) state {
	s.Attempts, s.Stalls = 0, 0
	s = s.release(now)
	if s.Status == StatusRunnable && next.After(s.Due) {
		s.Due = next
	}
	if s.Status == StatusRunnable && !s.Deadline.IsZero() && s.Deadline.After(now) && s.Deadline.Before(s.Due) {
		s.Due = s.Deadline
	}
	return s
}

// outrun says whether an input came while the deadline's run, claimed with
// arrived inputs, was working. Its result is then dropped: the reply wins.
func (s state) outrun(arrived int64) bool { return s.TimedOut && s.Arrived > arrived }

// commit ends a run that took n inputs.
func (s state) commit(next Next, n int64, now time.Time) state {
	s.Consumed += n
	s.Attempts, s.Stalls, s.Kick, s.Error = 0, 0, false, ""
	switch {
	case n > 0:
		s.Timeouts = 0
	case s.TimedOut:
		s.Timeouts++
	}
	s.Deadline, s.Wait, s.Finish = time.Time{}, 0, next.done
	switch {
	case next.review != "":
		return s.review(next.review)
	case next.send != nil:
		s.Step++
		s.Status, s.Due, s.Wait, s.TimedOut = StatusSending, time.Time{}, next.wait, false
		return s
	case next.wait > 0:
		s.Deadline = now.Add(next.wait)
	}
	return s.release(now)
}

// accepted confirms the send of step. Only the step that planned it moves.
func (s state) accepted(step int64, now time.Time) state {
	if s.Step != step || s.Status != StatusSending && s.Status != StatusAwaitingApproval {
		return s
	}
	if s.Wait > 0 {
		s.Deadline = now.Add(s.Wait)
	}
	return s.release(now)
}

// held: a person must approve the send of step.
func (s state) held(step int64) state {
	if s.Step == step && s.Status == StatusSending {
		s.Status = StatusAwaitingApproval
	}
	return s
}

// refused: the send of step will not happen. The step is told by an input that
// has arrived, so release finds it.
func (s state) refused(step int64, now time.Time) state {
	if s.Step != step || s.Status != StatusSending && s.Status != StatusAwaitingApproval {
		return s
	}
	return s.release(now)
}

// reviewSend: what became of the send of step is for a person to say.
func (s state) reviewSend(step int64, why string) state {
	if s.Step != step || s.Status != StatusSending && s.Status != StatusAwaitingApproval {
		return s
	}
	return s.review(why)
}

func (s state) review(why string) state {
	s.Status, s.Due, s.Error, s.TimedOut = StatusNeedsReview, time.Time{}, why, false
	return s
}

// fail ends a run whose step failed.
func (s state) fail(why string, now time.Time, backoff time.Duration, maxAttempts int64) state {
	s.TimedOut = false
	if s.Attempts++; s.Attempts >= maxAttempts {
		return s.review(why)
	}
	s.Status, s.Due, s.Error = StatusRunnable, now.Add(backoff), why
	return s
}

// stall ends a run whose inputs could not be loaded: the provider's trouble,
// not the step's, so no number of them is too many.
func (s state) stall(why string, now time.Time, backoff time.Duration) state {
	s.TimedOut = false
	s.Stalls++
	s.Status, s.Due, s.Error = StatusRunnable, now.Add(backoff), why
	return s
}

func (s state) cancel() state {
	s.Status, s.Due, s.Deadline, s.Finish, s.Kick = StatusCanceled, time.Time{}, time.Time{}, false, false
	return s
}

// reopen leaves a terminal state: to where an open send of the last step
// stands, else to wait without a deadline.
func (s state) reopen(now time.Time, open Status) state {
	s.Finish, s.Attempts, s.Error, s.Wait = false, 0, "", 0
	if open != "" {
		s.Status = open
		return s
	}
	return s.release(now)
}

// runNow skips a hold, a back-off or a review.
func (s state) runNow(now time.Time) state {
	switch s.Status {
	case StatusNeedsReview:
		s.Kick = true // a person's word, also over the loop cap
		s.Attempts, s.Error = 0, ""
		return s.release(now)
	case StatusRunnable:
		s.Due = now
	}
	return s
}
