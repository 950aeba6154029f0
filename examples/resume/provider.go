package main

import (
	"slices"
	"strings"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/goshen"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/verify"
)

// provider is who carries the mail: all that differs between providers is in
// this file. A service with one of them needs efa.New or goshen.New alone.
type provider struct {
	Mail    resume.Mail     // sends and reads
	Source  events.Source   // the pull door
	Profile events.Profile  // reads an event out of a push
	Doctor  doctor.Provider // what it says of its deliveries and its clock
	Path    string          // of the push door
	Engine  string          // its name: in one database each provider has workflows of its own

	Inboxes map[string][]string // inbox ID -> own addresses

	Verify   verify.Config // of the push door; without Secrets there is none
	Previous time.Time     // when the previous secret ends; zero if there is none
}

func (p provider) hasWebhook() bool { return len(p.Verify.Secrets) > 0 }

// providers are the values of PROVIDER. Each reads variables of its own, which
// begin with its name in capitals.
var providers = map[string]func(*env) provider{"efa": emailForAgents, "goshen": goshenEmail}

const defaultProvider = "efa"

// isService says whether any variable of a provider is set, to whatever. A
// PROVIDER that is none is a fault of a service too.
func isService(environ []string) bool {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if name == "PROVIDER" && value != "" && providers[value] == nil {
			return true
		}
		for p := range providers {
			if strings.HasPrefix(name, strings.ToUpper(p)+"_") {
				return true
			}
		}
	}
	return false
}

func (e *env) provider() provider {
	name := e.text("PROVIDER", defaultProvider)
	if e.text("PROVIDER", "") == "" && e.text("EFA_API_KEY", "") == "" && e.text("GOSHEN_API_KEY", "") != "" {
		e.fault("PROVIDER", "is not set, and GOSHEN_API_KEY is: say goshen")
	}
	read := providers[name]
	if read == nil {
		e.fault("PROVIDER", "%q is neither efa nor goshen", name)
		return provider{}
	}
	return read(e)
}

func emailForAgents(e *env) provider {
	c := efa.Config{
		BaseURL: e.text("EFA_BASE_URL", ""),
		Project: e.required("EFA_PROJECT_ID"),
		Key:     e.key("EFA_API_KEY", "efa_live_", "efa_test_"),
	}
	// One by one beside what is right, so that a fault names its variable.
	e.try("EFA_BASE_URL", faultOf(efa.New(efa.Config{BaseURL: c.BaseURL, Project: "x", Key: "x"})))
	if c.Project != "" {
		e.try("EFA_PROJECT_ID", faultOf(efa.New(efa.Config{Project: c.Project, Key: "x"})))
	}
	if c.Key != "" {
		e.try("EFA_API_KEY", faultOf(efa.New(efa.Config{Project: "x", Key: c.Key})))
	}
	p := provider{Profile: efa.Profile, Path: "/hooks/efa", Engine: "default", Inboxes: map[string][]string{}}
	own := e.list("EFA_INBOX_ADDRESS")
	for i, a := range own {
		if _, err := client.NormalizeAddress(a); a != "" && err != nil {
			e.fault("EFA_INBOX_ADDRESS", "value %d is not an e-mail address", i+1)
		}
	}
	for _, id := range e.list("AGENT_INBOX_IDS") {
		p.Inboxes[id] = own
	}
	p.Verify.Secrets, p.Previous = e.secrets(verify.RawSecret,
		"EFA_WEBHOOK_SECRET", "EFA_WEBHOOK_SECRET_PREVIOUS", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL")
	p.Verify.FailStatus = e.status("EFA_VERIFY_FAIL_STATUS", "400", "401", "503")
	if account, err := efa.New(c); err == nil { // else it is among the faults
		p.Mail, p.Source, p.Doctor = account, account.Source(), account
	}
	return p
}

// goshenEmail: an inbox's ID is its address, and what is refused at the push
// door comes again whatever the status.
func goshenEmail(e *env) provider {
	c := goshen.Config{
		Key:     e.key("GOSHEN_API_KEY", "bze_", "gme_"),
		Inboxes: e.goshenInboxes(),
		BaseURL: e.text("GOSHEN_BASE_URL", ""),
		Stream:  e.text("GOSHEN_STREAM", ""),
		Handled: e.text("GOSHEN_HANDLED_LABEL", ""),
	}
	some := []string{"agent@example.com"}
	e.try("GOSHEN_BASE_URL", faultOf(goshen.New(goshen.Config{Key: "x", Inboxes: some, BaseURL: c.BaseURL})))
	e.try("GOSHEN_HANDLED_LABEL", faultOf(goshen.New(goshen.Config{Key: "x", Inboxes: some, Handled: c.Handled})))
	if c.Key != "" {
		e.try("GOSHEN_API_KEY", faultOf(goshen.New(goshen.Config{Key: c.Key, Inboxes: some})))
	}
	switch {
	case c.Stream == "" && len(c.Inboxes) > 1:
		e.fault("GOSHEN_STREAM", "is required with several inboxes")
	case len(c.Stream) > 200:
		e.fault("GOSHEN_STREAM", "is over 200 bytes")
	}
	p := provider{Profile: goshen.Profile, Path: "/hooks/goshen", Engine: "goshen", Inboxes: map[string][]string{}}
	for _, a := range c.Inboxes {
		p.Inboxes[a] = c.Inboxes
	}
	p.Verify.Secrets, p.Previous = e.secrets(verify.Base64Secret,
		"GOSHEN_WEBHOOK_SECRET", "GOSHEN_WEBHOOK_SECRET_PREVIOUS", "GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL")
	if account, err := goshen.New(c); err == nil { // else it is among the faults
		p.Mail, p.Source, p.Doctor = account, account.Source(), account
	}
	return p
}

func (e *env) goshenInboxes() []string {
	list := e.list("GOSHEN_INBOXES")
	for i, a := range list {
		if normal, err := client.NormalizeAddress(a); a != "" && (err != nil || normal != a) {
			e.fault("GOSHEN_INBOXES", "value %d is not an e-mail address in lower case", i+1)
		}
		if a != "" && slices.Contains(list[:i], a) {
			e.fault("GOSHEN_INBOXES", "value %d stands there twice", i+1)
		}
	}
	return list
}

func faultOf(_ any, err error) error { return err }

// try reports what a constructor says of one variable.
func (e *env) try(name string, err error) {
	if err != nil {
		e.fault(name, "%v", err)
	}
}

// key is a required key that begins as the provider's do: one of another kind
// would be refused at every request.
func (e *env) key(name string, prefixes ...string) string {
	v := e.required(name)
	if v != "" && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v, p) }) {
		e.fault(name, "does not begin with %s", strings.Join(prefixes, " or "))
	}
	return v
}
