package main

import (
	"slices"
	"sync"
	"time"
)

// scene is a workflow and what its counterparty does.
type scene struct {
	story   string
	request request

	asked func(d *demonstration, s *scene) // the question has left
	acked func(d *demonstration, s *scene) // an acknowledgement is leaving

	question sending
	first    string    // the first answer
	once     sync.Once // what happens once
}

// writing is how long a counterparty takes to answer.
const writing = 300 * time.Millisecond

func newScene(id, counterparty string, replies int, story string) *scene {
	return &scene{story: story, request: request{
		ID: id, Counterparty: counterparty, Subject: "Quote for " + id, Text: "What would it cost?", Replies: replies,
	}}
}

// scenes, in groups that run together.
type scenes struct {
	plain, ambiguous, crash []*scene
}

func newScenes(provider fake) scenes {
	return scenes{
		plain:     []*scene{normalScene(), correctionScene(), newThreadScene(), duplicateScene(provider.often())},
		ambiguous: ambiguousScenes(),
		crash:     []*scene{crashScene()},
	}
}

func (g scenes) all() []*scene { return slices.Concat(g.plain, g.ambiguous, g.crash) }

func normalScene() *scene {
	s := newScene("normal", "ann@supplier.example", 1, "she answers")
	s.asked = func(d *demonstration, s *scene) { d.answer(s, letter{answers: s.question, text: "100 EUR."}) }
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
	s.asked = func(d *demonstration, s *scene) { d.answer(s, letter{subject: "my offer", text: "100 EUR."}) }
	return s
}

func duplicateScene(often string) *scene {
	s := newScene("duplicate", "dee@supplier.example", 1, "her answer is delivered "+often)
	s.asked = func(d *demonstration, s *scene) {
		d.answer(s, letter{answers: s.question, text: "100 EUR.", copies: 3})
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
		d.answer(s, letter{subject: "your request", text: "100 EUR."}) // on a new thread: which one does she mean?
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

// sceneOf is whose mail it is: a question has its subject, which an answer need
// not have. It is called with mu held; nil for mail that nobody should get.
func (d *demonstration) sceneOf(m sending) *scene {
	if m.replyTo == "" {
		return d.bySubject[m.subject]
	}
	return d.received[m.replyTo]
}

// sent is called for every mail that leaves, before the provider answers the
// service.
func (d *demonstration) sent(m sending) {
	d.mu.Lock()
	s := d.sceneOf(m)
	if s != nil && m.replyTo == "" {
		s.question = m
	}
	d.mu.Unlock()
	switch {
	case s == nil: // the count will tell
	case m.replyTo == "" && s.asked != nil:
		time.AfterFunc(writing, func() { s.asked(d, s) })
	case m.replyTo != "":
		d.say(s.request.ID, "%s", m.text)
		if s.acked != nil {
			s.acked(d, s)
		}
	}
}

// reading is called for every message that the service reads: when it is Bob's
// answer, his correction comes in.
func (d *demonstration) reading(message string) {
	s := d.scenes.plain[1]
	d.mu.Lock()
	first := s.first
	d.mu.Unlock()
	if message == first {
		s.once.Do(func() { d.answer(s, letter{answers: s.question, text: "Sorry: 90 EUR."}) })
	}
}

// answer is mail from a scene's counterparty.
func (d *demonstration) answer(s *scene, l letter) {
	l.from = s.request.Counterparty
	d.mu.Lock()
	message := d.provider.receive(l)
	d.received[message] = s
	if s.first == "" {
		s.first = message
	}
	d.mu.Unlock()
	d.say(s.request.ID, "%s wrote “%s” (%s)", l.from, l.text, message)
}
