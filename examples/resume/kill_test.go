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
	provider fake
	replies  int // of each

	mu       sync.Mutex
	rng      *rand.Rand
	asked    map[string]sending  // workflow -> its question
	inbound  map[string][]string // workflow -> messages it must acknowledge
	writing  map[string]int      // replies written or about to be
	question map[string]int      // how often it was asked
}

func newCounterparties(provider fake, replies int) *counterparties {
	c := &counterparties{
		provider: provider, replies: replies, rng: rand.New(rand.NewPCG(1, 2)),
		asked: map[string]sending{}, inbound: map[string][]string{}, writing: map[string]int{}, question: map[string]int{},
	}
	provider.watch(c.sent, func(string) {})
	return c
}

// sent: two answers close together after the question, one after each
// acknowledgement, some of them on a new thread.
func (c *counterparties) sent(m sending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	workflow, _, _ := strings.Cut(m.to, "@")
	if m.replyTo == "" {
		c.question[workflow]++
		c.asked[workflow] = m
		c.write(workflow, m)
		c.write(workflow, m)
		return
	}
	answers := c.asked[workflow]
	if c.rng.IntN(3) == 0 {
		answers = sending{}
	}
	c.write(workflow, answers)
}

// write is called with mu held.
func (c *counterparties) write(workflow string, answers sending) {
	if c.writing[workflow] == c.replies {
		return
	}
	c.writing[workflow]++
	time.AfterFunc(time.Duration(c.rng.IntN(400))*time.Millisecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		id := c.provider.receive(letter{from: workflow + "@example.com", text: "an answer", answers: answers})
		c.inbound[workflow] = append(c.inbound[workflow], id)
	})
}

// check counts.
func (c *counterparties) check(t *testing.T, workflows []string) {
	t.Helper()
	acks := map[string][]string{} // message -> the counterparties it was acknowledged to
	for _, m := range c.provider.sends() {
		ids, ack := strings.CutPrefix(m.text, "ack: ")
		for id := range strings.SplitSeq(ids, ",") {
			if ack {
				acks[id] = append(acks[id], m.to)
				require.True(t, strings.HasSuffix(ids, m.replyTo), "an acknowledgement answers the newest it names")
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
	people := newCounterparties(efaFake{srv}, replies)
	database := testdb.Database(t)
	nodes := []*process{}
	for range 3 {
		p := newProcess(t, srv, database, "SWEEP_START=beginning")
		p.start()
		srv.Webhook(p.url+p.door, efatest.MessageReceived)
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
	done(t, nodes, ids)
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

// done waits for workflows to be done, and a while for whatever would still be
// sent twice.
func done(t *testing.T, nodes []*process, ids []string) {
	t.Helper()
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
	time.Sleep(time.Second)
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
