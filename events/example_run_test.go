package events_test

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/events"
)

// Run sweeps until its context ends and outlives whatever can clear. Open the
// doors once it is attached; ask Health for readiness.
func ExampleSweeper_Run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sweeper, err := events.NewSweeper(newProvider(902), newMemory(), events.SweeperConfig{Start: events.FromBeginning})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sweeper.Health().Ready(time.Now(), 5*time.Minute))

	done := make(chan error)
	go func() { done <- sweeper.Run(ctx) }()
	<-sweeper.Attached()
	for sweeper.Health().Sweeps == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready:", sweeper.Health().Ready(time.Now(), 5*time.Minute))

	stop()
	fmt.Println("stopped:", <-done)
	// Output:
	// events: not attached to the stream
	// events: no sweep has reached the head yet
	// ready: <nil>
	// stopped: <nil>
}
