package efatest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The scopes that the documented endpoints ask for.
const (
	ScopeEventsRead     = "events:read"
	ScopeMessagesRead   = "messages:read"
	ScopeMessagesSend   = "messages:send"
	ScopeWebhooksRead   = "webhooks:read"
	ScopeWebhooksManage = "webhooks:manage"
)

// Key is a credential of the project.
type Key struct {
	// Token is what stands behind "Bearer ".
	Token string

	// Scopes are what it may do; nil is what an agent's key has: events:read,
	// messages:read, messages:send, webhooks:read.
	Scopes []string

	// Inboxes restricts it: other inboxes are not_found and their events are
	// left out of its pages. Nil is the whole project.
	Inboxes []string

	// Human marks the token of a person with the role owner or admin. Only a
	// person may create, control or rotate a webhook; a person has every scope.
	Human bool
}

func (k Key) may(scope string) bool {
	return k.Human || scope == "" || slices.Contains(k.Scopes, scope)
}

func (k Key) sees(inbox string) bool {
	return k.Inboxes == nil || slices.Contains(k.Inboxes, inbox)
}

// Config describes a project and its provider. The zero value is a project
// with one inbox and one key in real time.
type Config struct {
	Project     string            // default prj_test
	Environment string            // test (default) or live
	Inboxes     map[string]string // ID to address; default ibx_main
	Keys        []Key             // the first is [Server.Key]; default one agent's key

	// Seed decides IDs, secrets and everything that a fault leaves to chance.
	Seed uint64

	// Now is the provider's clock, default time.Now. [Server.Advance] moves
	// time on from there.
	Now func() time.Time

	// Manual makes the server act only when it is told to: webhooks are
	// attempted in [Server.Advance], [Server.Deliver] and [Server.Drain] and at
	// no other time, and unless Now is set, time stands still between calls of
	// Advance.
	Manual bool

	// Speed divides the waits of the retry table, for demonstrations: at 1000
	// the second attempt follows the first after 10 ms. Default 1.
	Speed float64

	ReplayWindow time.Duration // of an Idempotency-Key, default 30 days
	PushTimeout  time.Duration // of one webhook attempt, default 25 s

	// NoEgress is a deployment that may not call out: every attempt is held.
	NoEgress bool

	// InMemory opens no socket: only [Server.Handler], [Server.Transport] and
	// [Server.Client] reach the server. This is the form for testing/synctest.
	InMemory bool

	// Addr is where to listen, default a free port of 127.0.0.1.
	Addr string
}

const (
	defaultInbox   = "ibx_main"
	defaultAddress = "agent@test.mail.invalid"
)

func (c Config) withDefaults(token string) (Config, error) {
	c.Project = orDefault(c.Project, "prj_test")
	c.Environment = orDefault(c.Environment, "test")
	c.Addr = orDefault(c.Addr, "127.0.0.1:0")
	c.Speed = orDefault(c.Speed, 1)
	c.ReplayWindow = orDefault(c.ReplayWindow, 30*24*time.Hour)
	c.PushTimeout = orDefault(c.PushTimeout, 25*time.Second)
	if len(c.Inboxes) == 0 {
		c.Inboxes = map[string]string{defaultInbox: defaultAddress}
	}
	if len(c.Keys) == 0 {
		c.Keys = []Key{{Token: "efa_" + c.Environment + "_" + token}}
	}
	c.Keys = slices.Clone(c.Keys)
	for i := range c.Keys {
		c.Keys[i] = c.Keys[i].withDefaults()
	}
	if c.Now == nil {
		c.Now = time.Now
		if c.Manual {
			start := time.Now().Round(0)
			c.Now = func() time.Time { return start }
		}
	}
	return c, c.check()
}

func (k Key) withDefaults() Key {
	if k.Scopes == nil {
		k.Scopes = []string{ScopeEventsRead, ScopeMessagesRead, ScopeMessagesSend, ScopeWebhooksRead}
	}
	return k
}

func (c Config) check() error {
	var faults []error
	if c.Environment != "test" && c.Environment != "live" {
		faults = append(faults, fmt.Errorf("efatest: Environment %q is neither test nor live", c.Environment))
	}
	if c.Speed < 0 || c.ReplayWindow < 0 || c.PushTimeout < 0 {
		faults = append(faults, errors.New("efatest: Speed, ReplayWindow and PushTimeout must not be negative"))
	}
	seen := map[string]bool{}
	for _, k := range c.Keys {
		if k.Token == "" || seen[k.Token] {
			faults = append(faults, errors.New("efatest: a key's Token is empty or stands there twice"))
		}
		seen[k.Token] = true
		for _, inbox := range k.Inboxes {
			if _, known := c.Inboxes[inbox]; !known {
				faults = append(faults, fmt.Errorf("efatest: a key is restricted to inbox %q, which does not exist", inbox))
			}
		}
	}
	return errors.Join(faults...)
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
