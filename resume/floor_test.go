package resume_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// keeper is an inbox that forgets IDs as soon as it may, and its sweeper.
func (r *rig) keeper() (*dedupe.Inbox, *events.Sweeper) {
	r.t.Helper()
	cfg := dedupe.Config{Stream: r.mail.Stream(), Schema: r.cfg.Schema, Retain: time.Nanosecond}
	var in *dedupe.Inbox
	var err error
	if r.pg != nil {
		in, err = dedupe.NewPostgres(r.pool, cfg, r.pg.Route)
	} else {
		in, err = dedupe.NewSQLite(r.db, cfg, r.lite.Route)
	}
	require.NoError(r.t, err)
	s, err := events.NewSweeper(r.mail.Source(), in, events.SweeperConfig{Start: events.FromBeginning, LookBack: time.Nanosecond})
	require.NoError(r.t, err)
	return in, s
}

// Retention forgets the IDs of events, then workflows and their timelines. A
// sweep from the beginning runs nothing twice, whether the floor still knows
// what was handled or only the mailbox does, and finds what is new.
func TestSweepFromTheBeginningAfterRetention(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]string{"with its floor": "", "without": "delete from {s}floors"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				ctx := t.Context()
				r := open(listens, resume.Config{Retain: time.Hour})
				in, sweeper := r.keeper()
				over, live := r.ask("over", supplier), r.ask("live", "buyer@example.com")
				r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: over.MessageID, Text: "1"})
				r.srv.Inbound(efatest.Mail{From: "buyer@example.com", ReplyTo: live.MessageID, Text: "2"})
				r.srv.Inbound(efatest.Mail{From: "stranger@example.com", Text: "3"})
				r.sweeps(sweeper)
				r.last(2)
				require.NoError(t, r.eng.Cancel(ctx, "over", "ann"))

				r.jump(2 * time.Hour)
				for range 2 { // the second knows that the first has settled
					r.sweeps(sweeper)
				}
				require.NoError(t, in.Maintain(ctx))
				require.NoError(t, resume.Tidy(ctx, r.eng, 100))
				require.Zero(t, r.count("select count(*) from {s}seen where sequence is not null"), "their IDs are gone")
				require.Positive(t, r.count("select count(*) from {s}floors"))
				require.Zero(t, r.count("select count(*) from {s}workflows where id = 'over'"))
				require.Zero(t, r.count("select count(*) from {s}history where workflow = 'over'"))
				if forgotten != "" {
					r.exec(forgotten)
				}

				rows := r.count("select count(*) from {s}mail")
				late := r.srv.Inbound(efatest.Mail{From: supplier, ReplyTo: over.MessageID, Text: "4"})
				next := r.srv.Inbound(efatest.Mail{From: "buyer@example.com", ReplyTo: live.MessageID, Text: "5"})
				_, err := sweeper.SweepFrom(ctx, 0)
				require.NoError(t, err)
				r.sweeps(sweeper)
				require.Equal(t, []string{next.MessageID}, messages(r.last(3)), "nothing ran twice, nothing is lost")
				require.Equal(t, rows+2, r.count("select count(*) from {s}mail"))
				require.Len(t, r.queue(), 2, "the stranger's, and the late one")
				require.Equal(t, late.EventID, r.queue()[1].EventID)
				require.Equal(t, resume.ReasonLateReply, r.queue()[1].Reason)
				require.Len(t, r.srv.Sends(), 2)
				require.Equal(t, resume.StatusWaiting, r.status("live"))
			})
		})
	}
}

// sweeps sweeps once and lets the engine rest.
func (r *rig) sweeps(s *events.Sweeper) {
	r.t.Helper()
	_, err := s.Sweep(r.t.Context())
	require.NoError(r.t, err)
	r.fed = events.Cursor(r.srv.Head())
	r.rest()
}
