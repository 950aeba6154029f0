package dedupe_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// An Inbox on SQLite. The note and the event's ID are one commit: however often
// the event comes, there is one note.
func ExampleNewSQLite() {
	ctx := context.Background()
	db, remove := exampleDB("create table notes (event text not null, inbox text not null)")
	defer remove()

	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: events.Stream{Name: "support"}},
		func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error {
			for _, ev := range fresh {
				if _, err := tx.ExecContext(ctx, "insert into notes values (?, ?)", ev.ID, ev.Inbox); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		res, err := inbox.Push(ctx, events.Event{ID: "evt_1", Inbox: "ibx_support"})
		fmt.Printf("fresh %d, duplicate %d, error %v\n", res.Fresh, res.Duplicate, err)
	}
	var n int
	_ = db.QueryRowContext(ctx, "select count(*) from notes").Scan(&n)
	fmt.Println("notes:", n)
	// Output:
	// fresh 1, duplicate 0, error <nil>
	// fresh 0, duplicate 1, error <nil>
	// fresh 0, duplicate 1, error <nil>
	// notes: 1
}

// exampleDB opens a database of its own.
func exampleDB(statements ...string) (db *sql.DB, remove func()) {
	dir, err := os.MkdirTemp("", "dedupe")
	if err != nil {
		panic(err)
	}
	db, err = sql.Open("sqlite", filepath.Join(dir, "example.db"))
	if err != nil {
		panic(err)
	}
	for _, st := range statements {
		if _, err := db.Exec(st); err != nil {
			panic(err)
		}
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}
