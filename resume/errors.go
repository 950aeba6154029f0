package resume

import (
	"errors"
	"fmt"
	"time"
)

// Err is the umbrella of this package's errors: errors.Is(err, Err).
var Err = errors.New("resume")

// The errors that a caller decides by.
var (
	ErrExists     = fmt.Errorf("%w: a live workflow has this ID", Err)
	ErrNotFound   = fmt.Errorf("%w: not found", Err)
	ErrTerminal   = fmt.Errorf("%w: the workflow is over", Err)
	ErrNotOver    = fmt.Errorf("%w: the workflow is not over", Err)
	ErrInbox      = fmt.Errorf("%w: not an inbox of this engine", Err)
	ErrStream     = fmt.Errorf("%w: another stream", Err)
	ErrTooLate    = fmt.Errorf("%w: too late to undo", Err)
	ErrSchema     = fmt.Errorf("%w: the schema is not current: call Migrate", Err)
	ErrRefused    = fmt.Errorf("%w: the provider refuses the credential", Err)
	ErrStopped    = fmt.Errorf("%w: the engine stops", Err)
	ErrLeaseLost  = fmt.Errorf("%w: another worker has the workflow", Err)
	errOutrun     = fmt.Errorf("%w: an input came while the deadline's run was working", Err)
	errNotMine    = fmt.Errorf("%w: the row changed meanwhile", Err)
	errOpen       = fmt.Errorf("%w: a send begun before the mail has no outcome yet", Err)
	errUnreadable = fmt.Errorf("%w: the message cannot be read yet", Err)
)

// HandledError says that somebody has decided on this mail before, otherwise.
type HandledError struct {
	EventID  string
	Decision string // bind, dismiss, or empty where the engine placed it by itself
	Workflow string // of a bind
	By       string
	At       time.Time
}

func (e *HandledError) Error() string {
	if e.Decision == "" {
		return "resume: the mail was placed meanwhile"
	}
	return fmt.Sprintf("resume: handled before (%s) by %s at %s", e.Decision, e.By, e.At.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, Err) true.
func (e *HandledError) Is(target error) bool { return target == Err }
