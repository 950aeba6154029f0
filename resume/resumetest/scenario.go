package resumetest

import (
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// Scenario is a piece of a workflow's life to explore.
type Scenario struct {
	Name string
	Step resume.Step // the step function under test

	// Config is the engine's. Inboxes is filled in from Provider.
	Config resume.Config
	// Provider is the provider's. It runs in memory, and its time is moved by
	// [World.Jump] and [World.Settle] alone.
	Provider efatest.Config

	// Setup brings the world to where the actors begin. It is not explored.
	Setup func(w *World) error

	// Actors are what happens: at the same time where interleavings are
	// explored, one after another where crashes are.
	Actors []Actor

	// Check is a promise of your own, checked once all is done and nothing is
	// due any more.
	Check func(w *World) error
}

// Actor is somebody who acts: a worker, a sender, a door, a person, the clock.
// Do must not act on anything but its World, and gives the same answer when it
// is run again. Its error fails the scenario.
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
