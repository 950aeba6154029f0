package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
)

// scene is a workflow and what its counterparty does.
type scene struct {
	story   string
	request request

	asked func(d *demonstration, s *scene) // the question has left
	acked func(d *demonstration, s *scene) // an acknowledgement is leaving

	thread string    // of the question
	first  string    // the first answer
	once   sync.Once // what happens once
}

// writing is how long a counterparty takes to answer.
const writing = 300 * time.Millisecond

func newScene(id, counterparty string, replies int, story string) *scene {
	return &scene{story: story, request: request{
		ID: id, Counterparty: counterparty, Subject: "Quote for " + id, Text: "What would it cost?", Replies: replies,
	}}
}

// The scenes, in groups that run together.
var (
	plain     = []*scene{normalScene(), correctionScene(), newThreadScene(), duplicateScene()}
	ambiguous = ambiguousScenes()
	crash     = []*scene{crashScene()}
)

func normalScene() *scene {
	s := newScene("normal", "ann@supplier.example", 1, "she answers")
	s.asked = func(d *demonstration, s *scene) { d.answer(s, efatest.Mail{Thread: s.thread, Text: "100 EUR."}) }
	return s
}

// The correction arrives while the service reads the first answer: too late
// for that run, so it needs another.
func correctionScene() *scene {
	s := newScene("correction", "bob@supplier.example", 2, "he answers, and corrects himself while the agent is at work")
	s.asked = normalScene().asked
	return s
}

func newThreadScene() *scene {
	s := newScene("new-thread", "cem@supplier.example", 1, "he answers with a new mail instead of a reply")
	s.asked = func(d *demonstration, s *scene) { d.answer(s, efatest.Mail{Subject: "my offer", Text: "100 EUR."}) }
	return s
}

func duplicateScene() *scene {
	s := newScene("duplicate", "dee@supplier.example", 1, "her answer is delivered four times, once under another event ID")
	s.asked = func(d *demonstration, s *scene) {
		in := d.answer(s, efatest.Mail{Thread: s.thread, Text: "100 EUR."})
		d.provider.Redeliver(in.EventID)
		d.provider.Redeliver(in.EventID)
		d.provider.Announce(in.MessageID)
	}
	return s
}

func ambiguousScenes() []*scene {
	var both sync.WaitGroup
	both.Add(2)
	one := newScene("ambiguous-1", "eve@supplier.example", 1, "she has two requests from us")
	two := newScene("ambiguous-2", "eve@supplier.example", 1, "this is the other one")
	two.asked = func(*demonstration, *scene) { both.Done() }
	one.asked = func(d *demonstration, s *scene) {
		both.Done()
		both.Wait()
		d.answer(s, efatest.Mail{Subject: "your request", Text: "100 EUR."}) // on a new thread: which one does she mean?
	}
	return []*scene{one, two}
}

// The service is killed when the provider has taken the acknowledgement and
// not a byte of its answer has left: the service cannot know.
func crashScene() *scene {
	s := newScene("crash", "fay@supplier.example", 1, "the service is killed in the middle of acknowledging")
	s.asked = normalScene().asked
	s.acked = func(d *demonstration, s *scene) {
		s.once.Do(func() {
			d.service.kill()
			d.say(s.request.ID, "the provider has the mail; kill -9 of the service before it can store that")
			go d.service.restart()
		})
	}
	return s
}

// sent is called for every mail that leaves, before the provider answers the
// service.
func (d *demonstration) sent(m efatest.Send) {
	d.mu.Lock()
	s := d.scenes[m.Subject]
	if m.ReplyTo == "" {
		s.thread = m.ThreadID
	}
	d.mu.Unlock()
	switch {
	case m.ReplyTo == "" && s.asked != nil:
		time.AfterFunc(writing, func() { s.asked(d, s) })
	case m.ReplyTo != "":
		d.say(s.request.ID, "%s", m.Text)
		if s.acked != nil {
			s.acked(d, s)
		}
	}
}

// reading is called at every request: when the service reads Bob's answer, his
// correction comes in.
func (d *demonstration) reading(op efatest.Op, at efatest.Point, r *http.Request) {
	s := plain[1]
	d.mu.Lock()
	first := s.first
	d.mu.Unlock()
	if op != efatest.OpBody || at != efatest.AfterEffect || first == "" || r.PathValue("message") != first {
		return
	}
	s.once.Do(func() { d.answer(s, efatest.Mail{Thread: s.thread, Text: "Sorry: 90 EUR."}) })
}

// answer is mail from a scene's counterparty.
func (d *demonstration) answer(s *scene, m efatest.Mail) efatest.Received {
	m.From = s.request.Counterparty
	in := d.provider.Inbound(m)
	d.mu.Lock()
	d.received[in.MessageID] = s.request.ID
	if s.first == "" {
		s.first = in.MessageID
	}
	d.mu.Unlock()
	d.say(s.request.ID, "%s wrote “%s” (%s)", m.From, m.Text, in.MessageID)
	return in
}
