package resumetest

import (
	"errors"
	"fmt"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// Scenario is a piece of a workflow's life to explore.
type Scenario struct {
	Name string
	Step resume.Step // the step function under test
	// NewStep makes the step of a process when it starts, in place of Step: what
	// it keeps in memory a crash takes away.
	NewStep func() resume.Step

	// Config is the engine's. Inboxes, Name and Schema are filled in.
	Config resume.Config
	// Provider is the provider's. It runs in memory, its secrets and IDs are the
	// same in every run, and its time is moved by [World.Jump] and [World.Settle]
	// alone.
	Provider efatest.Config

	// Tables is SQL that makes tables of your own, for what the step writes with
	// [resume.Run.InPostgres] and [resume.Run.InSQL]. They are found without a
	// schema's name, and empty when a run begins. See [World.Postgres] and
	// [World.SQLite].
	Tables string

	// Setup brings the world to where the actors begin. It is not explored.
	Setup func(w *World) error

	// Actors are what happens: at the same time where interleavings are
	// explored, one after another where crashes are. Their names differ. What is
	// due when they are done is then done as by [World.Settle], with a crash at
	// each of its boundaries too.
	Actors []Actor

	// Check is a promise of your own, checked once all is done and nothing is
	// due any more.
	Check func(w *World) error
}

// Actor is somebody who acts: a worker, a sender, a door, a person, the clock.
// Do acts on its World alone, in the goroutine it is called in and with
// [World.Context], waits for no other actor, and does the same when it is run
// again. Its error fails the scenario, as do a panic and a failed require.
type Actor struct {
	Name string
	Do   func(w *World) error
}

// Do is an actor that does several things in order.
func Do(name string, acts ...func(*World) error) Actor {
	return Actor{Name: name, Do: func(w *World) error {
		for _, act := range acts {
			if err := act(w); err != nil {
				return err
			}
		}
		return nil
	}}
}

// check is an error where the scenario cannot be explored.
func (s *Scenario) check() error {
	if (s.Step == nil) == (s.NewStep == nil) {
		return errors.New("a Scenario needs a Step or a NewStep")
	}
	if len(s.Actors) > len(letters) {
		return fmt.Errorf("%d actors: want at most %d", len(s.Actors), len(letters))
	}
	names := map[string]bool{"setup": true, "check": true}
	for _, a := range s.Actors {
		if a.Do == nil || names[a.Name] {
			return fmt.Errorf("actor %q: want something to do, and a name of its own that is not setup or check", a.Name)
		}
		names[a.Name] = true
	}
	return nil
}
