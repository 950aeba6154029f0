package dedupe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/internal/sqldb"
)

func doors(tb testing.TB, in *dedupe.Inbox) doctor.Doors {
	tb.Helper()
	d, err := in.Doors(tb.Context())
	require.NoError(tb, err)
	return d
}

// sweptNow is a sweep that begins now and reaches the head.
func sweptNow(tb testing.TB, in *dedupe.Inbox) {
	tb.Helper()
	require.NoError(tb, in.Reached(tb.Context(), position(tb, in).Now, 0, 0, true))
}

func of(ev events.Event, inbox string) events.Event {
	ev.Inbox = inbox
	return ev
}

// inboxDoors is without times, which a test looks at apart.
func inboxDoors(d doctor.Doors) map[string]doctor.InboxDoors {
	by := map[string]doctor.InboxDoors{}
	for _, in := range d.Inboxes {
		name := in.Inbox
		in.Inbox, in.Oldest, in.Met = "", time.Time{}, time.Time{}
		by[name] = in
	}
	return by
}

func TestDoorsSaysWhichDoorBroughtWhat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		mustPush(t, in, pushed(2))
		take(t, in, page(1, 4)) // all of ibx_1
		mustPush(t, in, pushed(3))
		mustPush(t, in, pushed(5))
		mustPush(t, in, of(pushed(6), "ibx_2"))
		mustPush(t, in, of(pushed(7), "")) // a test has none

		d := doors(t, in)
		require.True(t, d.Known)
		require.EqualValues(t, 4, d.Cursor)
		require.Zero(t, d.Since, "the stream has no history")
		require.Equal(t, map[string]doctor.InboxDoors{
			"":      {PushOnly: 1},
			"ibx_1": {Both: 2, SweepOnly: 2, PushOnly: 1, Swept: true},
			"ibx_2": {PushOnly: 1},
		}, inboxDoors(d))
		require.WithinDuration(t, d.Now, d.Inboxes[1].Met, time.Minute)
		require.Equal(t, 7*24*time.Hour, d.Remembers)
	})
}

func TestDoorsCountsWhatSweepsPassedBy(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		mustPush(t, in, pushed(1))
		s.age(40 * time.Minute)
		mustPush(t, in, pushed(2))
		require.Zero(t, doors(t, in).Inboxes[0].Unmet, "no sweep has reached the head")
		s.age(30 * time.Minute)
		sweptNow(t, in)
		passed := doors(t, in).Inboxes[0]
		require.Equal(t, 2, passed.PushOnly)
		require.Equal(t, 1, passed.Unmet, "the one of 70 minutes ago")
		require.WithinDuration(t, time.Now().Add(-70*time.Minute), passed.Oldest, time.Minute)

		s.age(2 * time.Hour) // and no sweep meanwhile
		require.Equal(t, 1, doors(t, in).Inboxes[0].Unmet)
		sweptNow(t, in)
		mustPush(t, in, pushed(1)) // again: last_seen is now
		require.Equal(t, 2, doors(t, s.inbox(dedupe.Config{}, nil)).Inboxes[0].Unmet, "of another process too")

		take(t, in, page(1, 2))
		require.Equal(t, doctor.InboxDoors{Both: 2, Swept: true}, inboxDoors(doors(t, in))["ibx_1"])
	})
}

// A provider goes on trying old deliveries for a day: what lies behind the
// attached position, or in a stretch that was lost, no sweep can meet.
func TestDoorsDoesNotCountStraysOfHistoryAndLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head   events.Cursor
		column string
	}{"history": {70, "attached_at"}, "loss": {0, "lost_at"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, s *store) {
				in := s.inbox(dedupe.Config{}, nil)
				require.NoError(t, in.Attach(t.Context(), c.head))
				if c.head == 0 {
					require.NoError(t, in.Lost(t.Context(), 3, 9))
				}
				mustPush(t, in, pushed(1))
				s.age(3 * time.Hour)
				s.older("streams", c.column, 3*time.Hour)
				sweptNow(t, in)
				d := doors(t, in)
				require.WithinDuration(t, time.Now().Add(-3*time.Hour), d.Since, time.Minute)
				require.Zero(t, d.Inboxes[0].Unmet)

				s.older("streams", c.column, 25*time.Hour)
				require.Equal(t, 1, doors(t, in).Inboxes[0].Unmet, "it came a day after")
			})
		})
	}
}

func TestDoorsKnowsInboxesByTheirFloor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		take(t, in, page(1, 3))
		s.age(8 * 24 * time.Hour)
		require.NoError(t, in.Reached(t.Context(), position(t, in).Now, 3, 0, true))
		require.NoError(t, in.Maintain(t.Context()))
		require.Zero(t, s.count("{s}seen"))
		require.Empty(t, doors(t, in).Inboxes)
		mustPush(t, in, pushed(4))
		require.Equal(t, doctor.InboxDoors{PushOnly: 1, Swept: true, Floor: 3}, inboxDoors(doors(t, in))["ibx_1"])
	})
}

// Many webhooks that have just come must not hide one that sweeps passed by.
func TestDoorsIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		take(t, in, page(1, 2))
		mustPush(t, in, pushed(3))
		s.age(2 * time.Hour)
		sweptNow(t, in)
		s.many("ibx_other", 3000, 0)
		s.many("ibx_1", 3000, 10)

		d := doors(t, in)
		by := inboxDoors(d)
		require.Equal(t, 1000, d.Sample)
		require.Equal(t, doctor.InboxDoors{PushOnly: 1, Unmet: 1, SweepOnly: 1000, Swept: true}, by["ibx_1"])
		require.Equal(t, doctor.InboxDoors{PushOnly: 1000}, by["ibx_other"])
	})
}

func TestDoorsOfASourceWithoutSequences(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.NoError(t, in.Attach(t.Context(), 0))
		mustPush(t, in, pushed(1))
		take(t, in, events.Batch{Events: []events.Event{pushed(1), pushed(2)}})
		require.Equal(t, doctor.InboxDoors{PushOnly: 1, SweepOnly: 1}, inboxDoors(doors(t, in))["ibx_1"])
	})
}

func TestDoorsCountsWhatTheHandlerDidNotTake(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{MaxAttempts: 1, GiveUpAfter: time.Microsecond, RetryAfter: time.Microsecond}, failsOn(1, 2))
		take(t, in, page(1, 3))
		_, err := in.Unreadable(t.Context(), "msg_1")
		require.NoError(t, err)
		require.Equal(t, 2, doors(t, in).Parked)
		s.age(time.Hour)
		require.NoError(t, in.Maintain(t.Context()))
		require.NoError(t, in.Discard(t.Context(), event(1).ID, "ann", "spam"))
		d := doors(t, in)
		require.Equal(t, []int{0, 1, 1}, []int{d.Parked, d.Failed, d.Unreadable})
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		mustPush(t, in, pushed(1))
		mustPush(t, in, pushed(2))
		take(t, in, page(2, 3))
		known, err := in.Known(t.Context(), ids(1, 2, 3, 4))
		require.NoError(t, err)
		require.Equal(t, map[string]bool{event(1).ID: false, event(2).ID: true, event(3).ID: true}, known)

		known, err = in.Known(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, known)
		other := s.inbox(dedupe.Config{Stream: events.Stream{Name: "another"}}, nil)
		known, err = other.Known(t.Context(), ids(1, 2, 3))
		require.NoError(t, err)
		require.Empty(t, known, "IDs are a stream's own")
	})
}

// What a broken handler parked is not read through to find that nothing of it
// was given up.
func TestDoorsReadsNotAllThatIsParked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		in := s.inbox(dedupe.Config{}, nil)
		require.Zero(t, doors(t, in).Parked)
		s.exec(fmt.Sprintf(`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 5000)
			insert into {s}parked (stream, event_id, event, error, attempts, parked_at, first_failed, due)
			select '%s', 'evt_' || n, '', '', 1, {now}, {now}, {now} from numbers`, stream.Name))
		s.exec("analyze {s}parked")
		require.Equal(t, 1000, doors(t, in).Parked)
		require.Contains(t, s.plan(dedupe.Counts(in), stream.Name, 1000), "parked_failed")
	})
}

// plan is how the database would run a statement.
func (s *store) plan(query string, args ...any) string {
	s.tb.Helper()
	explain, columns := "explain ", 1
	if s.lite != nil {
		explain, columns = "explain query plan ", 4
	}
	var lines []string
	err := s.db.Read().Query(s.tb.Context(), explain+query, args, func(scan sqldb.Scan) error {
		line := make([]any, columns)
		for i := range line {
			line[i] = new(string)
		}
		err := scan(line...)
		lines = append(lines, *line[columns-1].(*string))
		return err
	})
	require.NoError(s.tb, err)
	return strings.Join(lines, "\n")
}

// A program that only looks, with a key of its own, leaves no trace.
func TestDoorsAndKnownChangeNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		look := func(credential string) doctor.Doors {
			in := s.inbox(dedupe.Config{Stream: events.Stream{Name: stream.Name, Credential: credential}}, nil)
			_, err := in.Known(t.Context(), ids(1))
			require.NoError(t, err)
			return doors(t, in)
		}
		d := look("key-2")
		require.False(t, d.Known)
		require.WithinDuration(t, time.Now(), d.Now, time.Minute)
		require.Zero(t, s.count("{s}streams"))

		take(t, s.inbox(dedupe.Config{}, nil), page(1, 2))
		require.True(t, look("key-2").Known)
		require.Zero(t, look(stream.Credential).CredentialChanged)
		_, err := s.inbox(dedupe.Config{Stream: events.Stream{Name: stream.Name, Origin: "https://other.example"}}, nil).Doors(t.Context())
		require.ErrorIs(t, err, events.ErrForeignStream)
	})
}

func TestDoorsWithoutTables(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	in, err := dedupe.NewPostgres(s.pool, dedupe.Config{Stream: stream, Schema: "never_migrated"},
		func(context.Context, pgx.Tx, []events.Event) error { return nil })
	require.NoError(t, err)
	_, err = in.Doors(t.Context())
	require.ErrorIs(t, err, dedupe.ErrNotMigrated)
	_, err = in.Known(t.Context(), ids(1))
	require.ErrorIs(t, err, dedupe.ErrNotMigrated)
}

// older makes one column look so much older.
func (s *store) older(table, column string, d time.Duration) {
	s.tb.Helper()
	by := " - $1::bigint * interval '1 microsecond'"
	if s.lite != nil {
		by = " - $1"
	}
	s.exec("update {s}"+table+" set "+column+" = "+column+by, d)
}

// many stores events of an inbox that just came: by push, or, above a
// sequence, by a sweep.
func (s *store) many(inbox string, n int, above int) {
	s.tb.Helper()
	sequence, bySweep, byPush := "null", "false", "true"
	if above > 0 {
		sequence, bySweep, byPush = fmt.Sprintf("%d + n", above), "true", "false"
	}
	s.exec(fmt.Sprintf(`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < %d)
		insert into {s}seen (stream, event_id, sequence, inbox, swept, pushed, first_seen, last_seen)
		select '%s', '%s_' || n, %s, '%s', %s, %s, {now}, {now} from numbers`, n, stream.Name, inbox, sequence, inbox, bySweep, byPush))
}
