package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/goshen/goshentest"
	"github.com/replywake/replywake/internal/testdb"
)

// One process, and two on one Postgres, are killed at the moments that matter
// while Goshen duplicates, drops, delays and loses, and a person changes labels
// between its pages.
func TestGoshenKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ processes, workflows, kills int }{{1, 12, 16}, {2, 16, 32}} {
		t.Run(fmt.Sprintf("processes=%d", c.processes), func(t *testing.T) {
			t.Parallel()
			killOnGoshen(t, c.processes, c.workflows, c.kills, 7)
		})
	}
}

func killOnGoshen(t *testing.T, processes, workflows, kills int, seed uint64) {
	const replies, strays = 3, 120
	srv := goshentest.NewServer(t, goshentest.Config{Speed: 50, Seed: seed})
	people := newCounterparties(&goshenFake{Server: srv}, replies)
	var stray []string
	for i := range strays { // over a page of mail that is nobody's
		stray = append(stray, srv.Inbound(goshentest.Mail{From: fmt.Sprintf("stray%d@example.org", i%7), Text: "hello"}).MessageID)
	}
	goshenMischief(srv)
	srv.OnRequest(relabel(srv, rand.New(rand.NewPCG(5, seed))))
	trap := newTrap(srv)
	database := testdb.Database(t)
	nodes := []*process{}
	for range processes {
		p := newGoshenProcess(t, srv, database, "SWEEP_START=beginning")
		p.start()
		nodes = append(nodes, p)
	}

	rng := rand.New(rand.NewPCG(3, seed))
	ids := []string{}
	for i := range max(workflows, kills) {
		srv.Webhook(nodes[rng.IntN(processes)].url + nodes[0].door)
		if i < workflows {
			id := fmt.Sprintf("w%02d", i)
			ids = append(ids, id)
			r := askGoshen(id, id+"@example.com", srv)
			r.Replies = replies
			create(t, nodes, r)
		}
		if i < kills {
			trap.kill(nodes, rng)
		}
	}
	done(t, nodes, ids)
	people.check(t, ids)
	var left []string
	for _, it := range nodes[0].unmatched() {
		left = append(left, it.MessageID)
	}
	require.ElementsMatch(t, stray, left, "what is nobody's waits for a person, and nothing else")
	nodes[0].until("handled", func() bool { return unread(srv) == 0 })
	srv.Check(t) // no key with two bodies, no page passed over, nothing undocumented
	for _, p := range nodes {
		require.Zero(t, p.terminate(10*time.Second))
	}
}

func unread(srv *goshentest.Server) (n int) {
	for _, m := range srv.Messages() {
		if slices.Contains(m.Labels, "unread") {
			n++
		}
	}
	return n
}

// trap stops a request of the service at a moment, so that a process can be
// killed there.
type trap struct {
	mu     sync.Mutex
	op     goshentest.Op
	at     goshentest.Point
	caught chan struct{} // closed when a request is there; nil if none is waited for
	free   chan struct{} // closed when it may go on
}

func newTrap(srv *goshentest.Server) *trap {
	tr := &trap{}
	srv.OnRequest(func(op goshentest.Op, at goshentest.Point, r *http.Request) {
		tr.mu.Lock()
		if tr.caught == nil || op != tr.op || at != tr.at {
			tr.mu.Unlock()
			return
		}
		close(tr.caught)
		free := tr.free
		tr.caught = nil
		tr.mu.Unlock()
		<-free
	})
	return tr
}

var moments = []struct {
	op goshentest.Op
	at goshentest.Point
}{
	{goshentest.OpListMessages, goshentest.AfterEffect},
	{goshentest.OpLabelMessage, goshentest.BeforeEffect}, // the event is committed, its label not
	{goshentest.OpLabelMessage, goshentest.AfterEffect},
	{goshentest.OpSend, goshentest.AfterEffect},
	{goshentest.OpReply, goshentest.BeforeEffect},
	{goshentest.OpReply, goshentest.AfterEffect},
	{goshentest.OpGetThread, goshentest.BeforeEffect},
}

// kill waits for a moment, at most a while, ends a process or all of them, and
// starts them again.
func (tr *trap) kill(nodes []*process, rng *rand.Rand) {
	moment := moments[rng.IntN(len(moments))]
	caught, free := make(chan struct{}), make(chan struct{})
	tr.mu.Lock()
	tr.op, tr.at, tr.caught, tr.free = moment.op, moment.at, caught, free
	tr.mu.Unlock()
	select {
	case <-caught:
	case <-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond):
	}
	victims := nodes[rng.IntN(len(nodes)):][:1]
	if rng.IntN(3) == 0 {
		victims = nodes
	}
	for _, p := range victims {
		p.kill()
	}
	tr.mu.Lock()
	tr.caught = nil
	tr.mu.Unlock()
	close(free)
	for _, p := range victims {
		p.start()
	}
}

// relabel is a person at the dashboard, who changes labels while the service
// reads: what was handled becomes unread again.
func relabel(srv *goshentest.Server, rng *rand.Rand) func(goshentest.Op, goshentest.Point, *http.Request) {
	var mu sync.Mutex
	changes := 0
	return func(op goshentest.Op, at goshentest.Point, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		list := srv.Messages()
		if op != goshentest.OpListMessages || len(list) == 0 || changes > 200 {
			return
		}
		changes++
		m := list[rng.IntN(len(list))]
		switch add := []string{"looked at"}; {
		case slices.Contains(m.Labels, "handled") && rng.IntN(3) == 0:
			srv.Label(m.Inbox, m.ID, append(add, "unread"), []string{"handled"})
		default:
			srv.Label(m.Inbox, m.ID, add, nil)
		}
	}
}

func goshenMischief(srv *goshentest.Server) {
	often := func(chance float64) goshentest.When { return goshentest.When{Always: true, Chance: chance} }
	for _, op := range []goshentest.Op{goshentest.OpSend, goshentest.OpReply} {
		srv.Fault(goshentest.Fault{Op: op, Drop: goshentest.DropAnswer, When: often(.15)})
		srv.Fault(goshentest.Fault{Op: op, Drop: goshentest.DropRequest, When: often(.05)})
		srv.Fault(goshentest.Fault{Op: op, Garbage: "<html>", When: often(.05)})
		srv.Fault(goshentest.Fault{Op: op, Linger: 300 * time.Millisecond, When: often(.1)})
	}
	srv.Fault(goshentest.Fault{Op: goshentest.OpLabelMessage, Drop: goshentest.DropAnswer, When: often(.05)})
	srv.Fault(goshentest.Fault{Status: 503, When: often(.05)})
	received := func(f goshentest.EventFault, chance float64) {
		f.Type, f.When = goshentest.EmailReceived, often(chance)
		srv.FaultEvents(f)
	}
	received(goshentest.EventFault{DropPush: true}, .3)
	received(goshentest.EventFault{Copies: 2}, .25)
	received(goshentest.EventFault{DelayPush: 800 * time.Millisecond}, .25)
}
