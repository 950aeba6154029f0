package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/client/goshen/goshentest"
)

// fake is the provider that a demonstration plays, as far as its scenes need
// one.
type fake interface {
	Close()
	Violations() []string // what the service did that it must not

	about() string // which provider, and where it listens
	lacks() string // what the scenes leave out; empty for nothing
	often() string // how one answer comes more than once here

	env() []string // of the service
	inbox() string
	push(service string) // webhooks, from now on

	// watch says what happens, while it happens: a mail leaves, and its sender
	// waits for the answer; a message's text is read.
	watch(sent func(sending), read func(message string))

	receive(l letter) (message string)
	sends() []sending // the provider's own record
}

// sending is one mail that the service sent, however often it asked.
type sending struct {
	message, thread, replyTo string
	to, subject, text        string
	replays                  int
}

// letter is mail from outside.
type letter struct {
	from, subject, text string
	answers             sending // in its thread; the zero value opens one
	copies              int     // further deliveries
}

// fakes are the providers by the value of PROVIDER. Each runs twenty times as
// fast as a real one.
var fakes = map[string]func() (fake, error){"efa": startEFA, "goshen": startGoshen}

type efaFake struct{ *efatest.Server }

func startEFA() (fake, error) {
	srv, err := efatest.Start(efatest.Config{Speed: 20})
	return efaFake{srv}, err
}

func (f efaFake) about() string { return f.URL() + ", a fake of Email for Agents in this process" }
func (f efaFake) lacks() string { return "" }
func (f efaFake) often() string { return "four times, once under another event ID" }
func (f efaFake) inbox() string { return f.Inbox() }

func (f efaFake) env() []string {
	return []string{
		"EFA_BASE_URL=" + f.URL(), "EFA_PROJECT_ID=" + f.Project(), "EFA_API_KEY=" + f.Key(), "EFA_WEBHOOK_SECRET=" + f.Secret(),
		"AGENT_INBOX_IDS=" + f.Inbox(), "EFA_INBOX_ADDRESS=" + f.Address(f.Inbox()),
	}
}

func (f efaFake) push(service string) { f.Webhook(service+"/hooks/efa", efatest.MessageReceived) }

func (f efaFake) watch(sent func(sending), read func(string)) {
	f.OnSend(func(s efatest.Send) { sent(efaSending(s)) })
	f.OnRequest(func(op efatest.Op, at efatest.Point, r *http.Request) {
		if op == efatest.OpBody && at == efatest.AfterEffect {
			read(r.PathValue("message"))
		}
	})
}

func (f efaFake) receive(l letter) string {
	in := f.Inbound(efatest.Mail{From: l.from, Subject: l.subject, Text: l.text, Thread: l.answers.thread})
	for range l.copies - 1 {
		f.Redeliver(in.EventID)
	}
	if l.copies > 0 {
		f.Announce(in.MessageID)
	}
	return in.MessageID
}

func (f efaFake) sends() (list []sending) {
	for _, s := range f.Sends() {
		list = append(list, efaSending(s))
	}
	return list
}

func efaSending(s efatest.Send) sending {
	return sending{message: s.MessageID, thread: s.ThreadID, replyTo: s.ReplyTo, to: s.To[0], subject: s.Subject, text: s.Text, replays: s.Replays}
}

type goshenFake struct {
	*goshentest.Server
	letters int
}

func startGoshen() (fake, error) {
	srv, err := goshentest.Start(goshentest.Config{Speed: 20})
	return &goshenFake{Server: srv}, err
}

func (f *goshenFake) about() string { return f.URL() + ", a fake of Goshen Email in this process" }
func (f *goshenFake) often() string { return "four times, and lies unread for the sweep besides" }
func (f *goshenFake) inbox() string { return f.Inbox() }

func (f *goshenFake) lacks() string {
	return "one message under two event IDs: here an event's ID is made of its message's"
}

func (f *goshenFake) env() []string {
	return []string{
		"GOSHEN_BASE_URL=" + f.URL(), "GOSHEN_API_KEY=" + f.Key(), "GOSHEN_INBOXES=" + f.Inbox(), "GOSHEN_WEBHOOK_SECRET=" + f.Secret(),
	}
}

func (f *goshenFake) push(service string) { f.Webhook(service + "/hooks/goshen") }

func (f *goshenFake) watch(sent func(sending), read func(string)) {
	f.OnSend(func(s goshentest.Send) { sent(goshenSending(s)) })
	f.OnRequest(func(op goshentest.Op, at goshentest.Point, r *http.Request) {
		if op == goshentest.OpGetMessage && at == goshentest.AfterEffect {
			read(r.PathValue("message"))
		}
	})
}

// receive is for one caller at a time: a fault is for the next event there is.
func (f *goshenFake) receive(l letter) string {
	f.letters++
	name, domain, _ := strings.Cut(l.from, "@")
	if l.copies > 0 {
		f.FaultEvents(goshentest.EventFault{Type: goshentest.EmailReceived, Copies: l.copies})
	}
	return f.Inbound(goshentest.Mail{
		From: l.from, Subject: l.subject, Text: l.text, InReplyTo: l.answers.message,
		MessageID: fmt.Sprintf("<%s-%d@%s>", name, f.letters, domain), // as short as a person's program would not make it
	}).MessageID
}

func (f *goshenFake) sends() (list []sending) {
	for _, s := range f.Sends() {
		list = append(list, goshenSending(s))
	}
	return list
}

func goshenSending(s goshentest.Send) sending {
	return sending{message: s.MessageID, thread: s.ThreadID, replyTo: s.InReplyTo, to: s.To[0], subject: s.Subject, text: s.Text, replays: s.Replays}
}
