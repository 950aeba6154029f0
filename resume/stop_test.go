package resume_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// hangs makes requests of an operation wait until the test ends; began tells of
// each.
func (r *rig) hangs(op efatest.Op, at efatest.Point) (began <-chan struct{}, off func()) {
	r.t.Helper()
	requests, over := make(chan struct{}, 100), make(chan struct{})
	on := make(chan struct{})
	r.srv.OnRequest(func(o efatest.Op, p efatest.Point, req *http.Request) {
		if o != op || p != at {
			return
		}
		select {
		case <-on:
			return
		default:
		}
		requests <- struct{}{}
		select {
		case <-over:
		case <-req.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
	r.t.Cleanup(func() { close(over) })
	return requests, func() { close(on) }
}

// A send that is cut off by the end of Drain may have left. Whoever is next
// asks at once what became of it: the same bytes, the same key.
func TestSendThatAStopCutsOffIsAskedForAtOnce(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]efatest.Point{"it did not leave": efatest.BeforeEffect, "it left": efatest.AfterEffect} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{Drain: time.Millisecond})
				began, off := r.hangs(efatest.OpSend, at)
				stop := r.run()
				r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				<-began
				stop()
				off()
				did, err := r.another().Once(t.Context(), resume.JobSend)
				require.NoError(t, err)
				require.True(t, did, "it is due")
				require.Equal(t, resume.StatusWaiting, r.status("w1"))
				require.Len(t, r.srv.Sends(), 1)
				r.srv.Check(t)
			})
		})
	}
}

func TestMailWhoseReadAStopCutsOffIsReadAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open opener) {
		r := open(listens, resume.Config{Drain: time.Millisecond})
		r.ask("w1", supplier)
		began, off := r.hangs(efatest.OpThread, efatest.BeforeEffect)
		stop := r.run()
		r.srv.Inbound(efatest.Mail{From: supplier, Text: "on a new thread"})
		r.feed()
		<-began
		stop()
		off()
		did, err := r.another().Once(t.Context(), resume.JobMatch)
		require.NoError(t, err)
		require.True(t, did, "it is due")
		require.Equal(t, int64(1), r.workflow("w1").Pending)
	})
}

// What was claimed as the stop came has not begun: it goes back as it was.
func TestWhatIsClaimedAsTheStopComesGoesBack(t *testing.T) {
	t.Parallel()
	for job, claim := range map[resume.Job]string{
		resume.JobSend: "first_attempt = coalesce", resume.JobMatch: "place = 'unplaced' and m.due <=", resume.JobWork: "w.due <=",
	} {
		t.Run(string(job), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open opener) {
				r := open(listens, resume.Config{})
				r.ask("w0", supplier)
				switch job {
				case resume.JobSend:
					r.start(resume.Start{ID: "w1", Counterparty: supplier, First: question(supplier)})
				case resume.JobWork:
					r.start(resume.Start{ID: "w1", Counterparty: supplier})
				case resume.JobMatch:
					r.srv.Inbound(efatest.Mail{From: supplier, Text: "on a new thread"})
					r.feed()
				}
				before := r.srv.Count(efatest.OpSend) + r.srv.Count(efatest.OpThread)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var claimed atomic.Bool
				hooked := sqldb.WithHook(ctx, func(point string) error {
					if strings.Contains(point, claim) && strings.Contains(point, "limit") && !strings.Contains(point, "count(*)") {
						claimed.Store(true)
					} else if point == "after commit" && claimed.Load() {
						cancel()
					}
					return nil
				})
				require.NoError(t, r.eng.Run(hooked))
				require.Equal(t, before, r.srv.Count(efatest.OpSend)+r.srv.Count(efatest.OpThread), "nothing was asked of the provider")
				require.Empty(t, r.runs())
				require.True(t, r.due(job))
				require.Zero(t, r.count("select count(*) from {s}sends where workflow = 'w1' and (first_attempt is not null or attempts > 0)"))
				require.Zero(t, r.count("select count(*) from {s}mail where attempts > 0"))
			})
		})
	}
}
