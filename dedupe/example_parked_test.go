package dedupe_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// An event on which the handler always fails is parked: its neighbours are
// committed, the cursor passes it, and a person may look at it.
func ExampleInbox_Parked() {
	ctx := context.Background()
	db, remove := exampleDB()
	defer remove()

	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: events.Stream{Name: "support"}},
		func(_ context.Context, _ *sql.Tx, fresh []events.Event) error {
			if slices.ContainsFunc(fresh, func(ev events.Event) bool { return ev.ID == "evt_2" }) {
				return errors.New("cannot parse this one")
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := inbox.Take(ctx, events.Batch{
		Events: []events.Event{{ID: "evt_1", Sequence: 1}, {ID: "evt_2", Sequence: 2}, {ID: "evt_3", Sequence: 3}},
		Cursor: 3,
	})
	fmt.Printf("fresh %d, parked %d, error %v\n", res.Fresh, res.Parked, err)

	list, _ := inbox.Parked(ctx, "", 0)
	for _, p := range list {
		fmt.Printf("%s after %d attempt: %s\n", p.ID, p.Attempts, p.Error.Text())
	}
	fmt.Println(inbox.Discard(ctx, "evt_2", "ana", "not for us"))
	// Output:
	// fresh 2, parked 1, error <nil>
	// evt_2 after 1 attempt: cannot parse this one
	// <nil>
}
