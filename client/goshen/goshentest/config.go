package goshentest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The scopes of an account's key.
const (
	ScopeInboxesRead   = "inboxes:read"
	ScopeMessagesRead  = "messages:read"
	ScopeMessagesWrite = "messages:write"
	ScopeMessagesSend  = "messages:send"
)

// Key is a credential.
type Key struct {
	// Token is what stands behind "Bearer ".
	Token string

	// Scopes are what it may do; nil is all.
	Scopes []string

	// Inbox makes it a mailbox key: it reaches this inbox alone and has every
	// scope.
	Inbox string
}

func (k Key) may(scope string) bool {
	return k.Inbox != "" || k.Scopes == nil || slices.Contains(k.Scopes, scope)
}

func (k Key) sees(inbox string) bool { return k.Inbox == "" || k.Inbox == inbox }

// Config describes an account and its provider. The zero value is an account
// with one inbox and one key in real time.
type Config struct {
	Inboxes []string // addresses in lower case; default agent@mail.goshen.invalid
	Keys    []Key    // the first is [Server.Key]; default one account key

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

	// Speed divides the waits between attempts, for demonstrations. Default 1.
	Speed float64

	PushTimeout time.Duration // of one webhook attempt, default 10 s
	SendLimit   int           // sends of one inbox in any 24 hours, default 250

	// SilentRelease: no event tells that a message was released from
	// quarantine. The documents say so; the provider's own code sends one,
	// which is the default here.
	SilentRelease bool

	// InMemory opens no socket: only [Server.Handler], [Server.Transport] and
	// [Server.Client] reach the server. This is the form for testing/synctest.
	InMemory bool

	// Addr is where to listen, default a free port of 127.0.0.1.
	Addr string
}

func (c Config) withDefaults(token string) (Config, error) {
	c.Addr = orDefault(c.Addr, "127.0.0.1:0")
	c.Speed = orDefault(c.Speed, 1)
	c.PushTimeout = orDefault(c.PushTimeout, 10*time.Second)
	c.SendLimit = orDefault(c.SendLimit, 250)
	if len(c.Inboxes) == 0 {
		c.Inboxes = []string{"agent@mail.goshen.invalid"}
	}
	if len(c.Keys) == 0 {
		c.Keys = []Key{{Token: "bze_" + token}}
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

func (c Config) check() error {
	var faults []error
	if c.Speed < 0 || c.PushTimeout < 0 || c.SendLimit < 0 {
		faults = append(faults, errors.New("goshentest: Speed, PushTimeout and SendLimit must not be negative"))
	}
	for i, inbox := range c.Inboxes {
		if !strings.Contains(inbox, "@") || strings.ToLower(inbox) != inbox || slices.Contains(c.Inboxes[:i], inbox) {
			faults = append(faults, fmt.Errorf("goshentest: inbox %q is no address in lower case, or stands there twice", inbox))
		}
	}
	seen := map[string]bool{}
	for _, k := range c.Keys {
		if k.Token == "" || seen[k.Token] {
			faults = append(faults, errors.New("goshentest: a key's Token is empty or stands there twice"))
		}
		seen[k.Token] = true
		if k.Inbox != "" && !slices.Contains(c.Inboxes, k.Inbox) {
			faults = append(faults, fmt.Errorf("goshentest: a key is of inbox %q, which does not exist", k.Inbox))
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
