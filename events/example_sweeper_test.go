package events_test

import (
	"context"
	"fmt"

	"github.com/replywake/replywake/events"
)

// The pull door reads from the stored position to the head. Attach first: what
// is there before is history, and a reply to what the program sends is not. A
// service then calls Run; a job calls Sweep.
func ExampleSweeper_Sweep() {
	ctx := context.Background()
	source := newProvider(902, 903) // or efaClient.Source()
	inbox := newMemory()            // or a dedupe.Inbox

	sweeper, err := events.NewSweeper(source, inbox, events.SweeperConfig{Start: events.FromNow})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := sweeper.Attach(ctx); err != nil {
		fmt.Println(err)
		return
	}
	source.add(907, 911, 934)

	for range 2 {
		report, err := sweeper.Sweep(ctx)
		fmt.Println(report.Fresh, "fresh,", report.Duplicate, "read again,", err)
	}
	// Output:
	// 3 fresh, 0 read again, <nil>
	// 0 fresh, 3 read again, <nil>
}
