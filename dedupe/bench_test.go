package dedupe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
)

// The ratios that matter are in one run:
//
//	go test -run '^$' -bench . -benchtime 3s -count 3 ./dedupe
//
// "plain" is what a handler writes by hand: begin, insert the ID, insert the
// effect, commit, each event on its own.

func eachStore(b *testing.B, bench func(b *testing.B, s *store)) {
	b.Run("Postgres", func(b *testing.B) { bench(b, postgres(b)) })
	b.Run("SQLite", func(b *testing.B) { bench(b, sqlite(b)) })
}

// events/s of n goroutines that do one event at a time.
func perEvent(b *testing.B, goroutines int, one func(ctx context.Context, n int) error) {
	ctx := b.Context()
	var n atomic.Int64
	b.SetParallelism(max(1, goroutines/2)) // of two processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := one(ctx, int(n.Add(1))); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkPush(b *testing.B) {
	eachStore(b, func(b *testing.B, s *store) {
		s.exec("create table " + s.table + "_ids (id text primary key)")
		var commits atomic.Int64
		cfg := dedupe.Config{Stream: stream, AfterCommit: func() { commits.Add(1) }}
		rows := s.inbox(cfg, nil)
		bulk, err := s.open(cfg, s.bulk)
		require.NoError(b, err)
		base := 0
		for _, goroutines := range []int{1, 32} {
			b.Run(fmt.Sprintf("plain/%d", goroutines), func(b *testing.B) {
				base += 10_000_000
				bench(b, goroutines, func(ctx context.Context, n int) error { return s.plain(ctx, base+n) })
			})
			for name, in := range map[string]*dedupe.Inbox{"inbox": rows, "bulk": bulk} {
				b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
					base += 10_000_000
					commits.Store(0)
					bench(b, goroutines, func(ctx context.Context, n int) error {
						_, err := in.Push(ctx, pushed(base+n))
						return err
					})
					b.ReportMetric(float64(b.N)/float64(commits.Load()), "events/commit")
				})
			}
		}
	})
}

func bench(b *testing.B, goroutines int, one func(ctx context.Context, n int) error) {
	if goroutines > 1 {
		perEvent(b, goroutines, one)
		return
	}
	n := 0
	for b.Loop() {
		n++
		require.NoError(b, one(b.Context(), n))
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

var plainTurn sync.Mutex

// plain is one event in a transaction of its own, four statements.
func (s *store) plain(ctx context.Context, n int) error {
	id := pushed(n).ID
	if s.lite != nil {
		plainTurn.Lock() // SQLite has one writer; without this most would fail
		defer plainTurn.Unlock()
		tx, err := s.lite.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
		if _, err := tx.ExecContext(ctx, "insert into "+s.table+"_ids values (?) on conflict do nothing", id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "insert into "+s.table+" values (?, 1)", id); err != nil {
			return err
		}
		return tx.Commit()
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it has nothing to do
	if _, err := tx.Exec(ctx, "insert into "+s.table+"_ids values ($1) on conflict do nothing", id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into "+s.table+" values ($1, 1)", id); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// bulk is a handler with one statement for all its events; inbox above has one
// an event.
func (s *store) bulk(_ context.Context, exec exec, fresh []events.Event) error {
	list := make([]string, len(fresh))
	for i, ev := range fresh {
		list[i] = ev.ID
	}
	if s.lite == nil {
		return exec("insert into "+s.table+" select unnest($1::text[]), 1", list)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return exec("insert into "+s.table+" select value, 1 from json_each($1)", string(text))
}

func BenchmarkTake(b *testing.B) {
	eachStore(b, func(b *testing.B, s *store) {
		in, err := s.open(dedupe.Config{Stream: stream}, s.bulk)
		require.NoError(b, err)
		n := 0
		report := func(b *testing.B) { b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "events/s") }
		s.exec("create table " + s.table + "_ids (id text primary key)")
		b.Run("plain", func(b *testing.B) {
			m := 50_000_000
			for b.Loop() {
				for range 100 {
					m++
					require.NoError(b, s.plain(b.Context(), m))
				}
			}
			report(b)
		})
		b.Run("fresh", func(b *testing.B) {
			for b.Loop() {
				take(b, in, page(n+1, n+100))
				n += 100
			}
			report(b)
		})
		b.Run("known", func(b *testing.B) {
			for b.Loop() {
				take(b, in, page(1, 100))
			}
			report(b)
		})
	})
}

// Neither the position nor the pruning reads the history: the same at any size.
func BenchmarkHistory(b *testing.B) {
	for _, size := range []int{1_000, 200_000} {
		eachStore(b, func(b *testing.B, s *store) {
			in := s.inbox(dedupe.Config{}, nil)
			take(b, in, page(1, 1))
			s.exec(`insert into {s}seen (stream, event_id, sequence, inbox, swept, first_seen, last_seen)
				with recursive g(n) as (select 2 union all select n + 1 from g where n < $1)
				select 'mail', 'e' || n, n, 'ibx_1', true, {now}, {now} from g`, size)
			if s.pool != nil {
				_, err := s.pool.Exec(b.Context(), s.db.Render("vacuum analyze {s}seen"))
				require.NoError(b, err)
			}
			began := position(b, in).Now
			reached(b, in, began.Add(time.Second), events.Cursor(size), 0, true)
			b.Run(fmt.Sprintf("%d/Reached", size), func(b *testing.B) {
				for b.Loop() {
					began = began.Add(time.Microsecond) // a sweep of its own
					require.NoError(b, in.Reached(b.Context(), began, events.Cursor(size), 0, true))
				}
			})
			b.Run(fmt.Sprintf("%d/Maintain", size), func(b *testing.B) {
				for b.Loop() {
					maintain(b, in)
				}
			})
			b.Run(fmt.Sprintf("%d/Take", size), func(b *testing.B) {
				for b.Loop() {
					take(b, in, page(1, 1))
				}
			})
		})
	}
}
