package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/testdb"
)

// counterparties answer the service's mail and count its acknowledgements, at
// the provider.
type counterparties struct {
	srv     *efatest.Server
	replies int // of each

	mu       sync.Mutex
	rng      *rand.Rand
	thread   map[string]string   // workflow -> thread of its question
	inbound  map[string][]string // workflow -> messages it must acknowledge
	writing  map[string]int      // replies written or about to be
	question map[string]int      // how often it was asked
}

func newCounterparties(srv *efatest.Server, replies int) *counterparties {
	c := &counterparties{
		srv: srv, replies: replies, rng: rand.New(rand.NewPCG(1, 2)),
		thread: map[string]string{}, inbound: map[string][]string{}, writing: map[string]int{}, question: map[string]int{},
	}
	srv.OnSend(c.sent)
	return c
}

// sent: two answers close together after the question, one after each
// acknowledgement, some of them on a new thread.
func (c *counterparties) sent(m efatest.Send) {
	c.mu.Lock()
	defer c.mu.Unlock()
	workflow, _, _ := strings.Cut(m.To[0], "@")
	if m.ReplyTo == "" {
		c.question[workflow]++
		c.thread[workflow] = m.ThreadID
		c.write(workflow, m.ThreadID)
		c.write(workflow, m.ThreadID)
		return
	}
	thread := c.thread[workflow]
	if c.rng.IntN(3) == 0 {
		thread = ""
	}
	c.write(workflow, thread)
}

// write is called with mu held.
func (c *counterparties) write(workflow, thread string) {
	if c.writing[workflow] == c.replies {
		return
	}
	c.writing[workflow]++
	time.AfterFunc(time.Duration(c.rng.IntN(400))*time.Millisecond, func() {
		in := c.srv.Inbound(efatest.Mail{From: workflow + "@example.com", Thread: thread, Text: "an answer"})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inbound[workflow] = append(c.inbound[workflow], in.MessageID)
	})
}

// check counts.
func (c *counterparties) check(t *testing.T, workflows []string) {
	t.Helper()
	acks := map[string][]string{} // message -> the counterparties it was acknowledged to
	for _, m := range c.srv.Sends() {
		ids, ack := strings.CutPrefix(m.Text, "ack: ")
		for id := range strings.SplitSeq(ids, ",") {
			if ack {
				acks[id] = append(acks[id], m.To[0])
				require.True(t, strings.HasSuffix(ids, m.ReplyTo), "an acknowledgement answers the newest it names")
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range workflows {
		require.Equal(t, 1, c.question[w], "%s: times its question was sent", w)
		require.Len(t, c.inbound[w], c.replies)
		for _, id := range c.inbound[w] {
			require.Equal(t, []string{w + "@example.com"}, acks[id], "%s: acknowledgements of %s", w, id)
		}
	}
}

// Three processes on one Postgres are killed again and again while the
// provider duplicates, drops, delays and loses.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const workflows, replies, kills = 24, 3, 24
	srv := efatest.NewServer(t, efatest.Config{Speed: 50, Seed: 7})
	mischief(srv)
	people := newCounterparties(srv, replies)
	database := testdb.Database(t)
	nodes := []*process{}
	for range 3 {
		p := newProcess(t, srv, database, "SWEEP_START=beginning")
		p.start()
		srv.Webhook(p.url+"/hooks/efa", efatest.MessageReceived)
		nodes = append(nodes, p)
	}
	nodes[0].until("ready", func() bool { return nodes[0].status("/readyz") == 200 })

	rng := rand.New(rand.NewPCG(3, 4))
	ids := []string{}
	for i := range workflows {
		id := fmt.Sprintf("w%02d", i)
		ids = append(ids, id)
		create(t, nodes, ask(id, id+"@example.com", replies, srv))
		if i < kills {
			kill(nodes, rng)
		}
	}
	deadline := time.Now().Add(60 * time.Second)
	for open := ids; len(open) > 0; {
		require.True(t, time.Now().Before(deadline), "not done: %v", open)
		var still []string
		for _, id := range open {
			if nodes[0].workflow(id).Status != "done" {
				still = append(still, id)
			}
		}
		open = still
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(time.Second) // for whatever would still be sent twice
	people.check(t, ids)
	require.Empty(t, nodes[0].unmatched())
	srv.Check(t) // no key with two bodies, nothing undocumented
	for _, p := range nodes {
		require.Zero(t, p.terminate(10*time.Second))
	}
}

// create asks any process until one answers.
func create(t *testing.T, nodes []*process, r request) {
	t.Helper()
	require.Eventually(t, func() bool {
		p := nodes[rand.IntN(len(nodes))]
		status := p.ask("POST", "/workflows", r, nil)
		return status == 201 || status == 200
	}, 20*time.Second, 20*time.Millisecond)
}

// kill ends a process, or all of them, and starts it again.
func kill(nodes []*process, rng *rand.Rand) {
	time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	victims := nodes[rng.IntN(len(nodes)):][:1]
	if rng.IntN(6) == 0 {
		victims = nodes
	}
	for _, p := range victims {
		p.kill()
	}
	time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
	for _, p := range victims {
		p.start()
	}
}

func mischief(srv *efatest.Server) {
	often := func(chance float64) efatest.When { return efatest.When{Always: true, Chance: chance} }
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropAnswer, When: often(.1)})
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Drop: efatest.DropMidBody, When: often(.1)})
	srv.Fault(efatest.Fault{Op: efatest.OpSend, Linger: 300 * time.Millisecond, When: often(.1)})
	srv.Fault(efatest.Fault{Status: 503, When: often(.05)})
	received := func(f efatest.EventFault, chance float64) {
		f.Type, f.When = efatest.MessageReceived, often(chance)
		srv.FaultEvents(f)
	}
	received(efatest.EventFault{DropPush: true}, .25)
	received(efatest.EventFault{Copies: 1}, .2)
	received(efatest.EventFault{Late: 1500 * time.Millisecond, DropPush: true}, .2)
	received(efatest.EventFault{DelayPush: 500 * time.Millisecond}, .2)
	received(efatest.EventFault{Reorder: true}, .2)
}
