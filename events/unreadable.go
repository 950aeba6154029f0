package events

import (
	"errors"
	"fmt"
	"runtime"
)

// withoutContent makes a profile's error fit to be logged. The text of one
// that wraps ErrNotEvent is made for it; any other may quote the body.
func withoutContent(err error) error {
	if errors.Is(err, ErrNotEvent) {
		return err
	}
	return fmt.Errorf("%w: the profile failed with %T", ErrNotEvent, err)
}

// profilePanic is a panic of a profile. Only the runtime's own text is shown:
// any other value may hold the body.
type profilePanic struct{ value any }

func (p *profilePanic) Error() string {
	if e, ok := p.value.(runtime.Error); ok {
		return fmt.Sprintf("%v: the profile panicked: %v", ErrNotEvent, e)
	}
	return fmt.Sprintf("%v: the profile panicked with %T", ErrNotEvent, p.value)
}

func (p *profilePanic) Unwrap() error { return ErrNotEvent }
