package events_test

import (
	"context"
	"fmt"

	"github.com/replywake/replywake/events"
)

// Pages gives pages and not events, so that there is a boundary to commit at:
// the work of a page and its last position, together. The source here is in
// memory; efa.Client has one.
func ExamplePages() {
	source := newProvider(907, 911, 934)
	stored := events.Cursor(903)

	for page, err := range events.Pages(context.Background(), source, stored) {
		if err != nil {
			fmt.Println("the next run goes on after", stored, "because of", err)
			return
		}
		for _, ev := range page.Events {
			fmt.Println("work:", ev.ID)
		}
		stored = page.Last() // in the transaction of the work
		fmt.Println("commit:", stored)
	}
	// Output:
	// work: evt_907
	// work: evt_911
	// commit: 911
	// work: evt_934
	// commit: 934
}
