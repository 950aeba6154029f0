package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// config is the environment, checked. The variables:
//
//	EFA_BASE_URL                       provider's base URL; default the public one
//	EFA_PROJECT_ID, EFA_API_KEY        required
//	EFA_WEBHOOK_SECRET                 unset: no webhook door, sweep only
//	EFA_WEBHOOK_SECRET_PREVIOUS        the secret before it, while it is being replaced
//	EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL  RFC 3339; default 24 h after the start
//	EFA_VERIFY_FAIL_STATUS             400 (default), 401 or 503 for what does not verify
//	AGENT_INBOX_IDS                    required; comma-separated: others are acknowledged and ignored
//	EFA_INBOX_ADDRESS                  required; our own addresses, comma-separated
//	DATABASE_URL                       postgres://… or sqlite:PATH; default sqlite:replywake.db
//	LISTEN_ADDR                        /hooks/efa, /healthz, /readyz; default 127.0.0.1:8080
//	ADMIN_ADDR                         everything else; default 127.0.0.1:8081
//	ADMIN_TOKEN                        unset: nothing listens at ADMIN_ADDR
//	SWEEP_EVERY                        default 1m
//	SWEEP_START                        beginning, or now (default)
//	LEASE                              how long a run may stand without a heartbeat; default 30s
//	SEND_RETRY_AFTER                   a send without an outcome is tried again after this; default 1m
//	MAX_SENDS_PER_HOUR                 loop cap per workflow; default 20
type config struct {
	Provider efa.Config
	Verify   verify.Config // without Secrets there is no webhook door
	Previous time.Time     // when the previous secret ends; zero if there is none

	Inboxes  map[string][]string // inbox ID -> own addresses
	Database string

	Listen, Admin, AdminToken string

	SweepEvery      time.Duration
	SweepStart      events.Start
	Lease           time.Duration
	SendRetryAfter  time.Duration
	MaxSendsPerHour int
}

func (c config) hasWebhook() bool { return len(c.Verify.Secrets) > 0 }

// isService says whether any EFA_ variable is set, to whatever.
func isService(environ []string) bool {
	for _, v := range environ {
		if strings.HasPrefix(v, "EFA_") {
			return true
		}
	}
	return false
}

// loadConfig reads the environment and reports every fault of it at once. No
// fault shows a secret.
func loadConfig(lookup func(string) (string, bool), now time.Time) (config, error) {
	e := &env{lookup: lookup}
	c := config{
		Provider:        e.provider(),
		Inboxes:         e.inboxes(),
		Database:        e.database(),
		Listen:          e.address("LISTEN_ADDR", "127.0.0.1:8080"),
		Admin:           e.address("ADMIN_ADDR", "127.0.0.1:8081"),
		AdminToken:      e.text("ADMIN_TOKEN", ""),
		SweepEvery:      e.duration("SWEEP_EVERY", time.Minute),
		Lease:           e.duration("LEASE", 30*time.Second),
		SendRetryAfter:  e.duration("SEND_RETRY_AFTER", time.Minute),
		MaxSendsPerHour: e.count("MAX_SENDS_PER_HOUR", 20),
	}
	c.Verify, c.Previous = e.secrets(now)
	switch start := e.text("SWEEP_START", "now"); start {
	case "now":
		c.SweepStart = events.FromNow
	case "beginning":
		c.SweepStart = events.FromBeginning
	default:
		e.fault("SWEEP_START", "%q is neither beginning nor now", start)
	}
	if c.AdminToken != "" && c.Listen == c.Admin {
		e.fault("ADMIN_ADDR", "is LISTEN_ADDR: the admin routes must not be where strangers are")
	}
	return c, errors.Join(e.faults...)
}

type env struct {
	lookup func(string) (string, bool)
	faults []error
}

func (e *env) fault(name, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	e.faults = append(e.faults, fmt.Errorf("%s: %s", name, text))
}

// text reads a variable. Empty is unset.
func (e *env) text(name, standard string) string {
	if v, _ := e.lookup(name); v != "" {
		return v
	}
	return standard
}

func (e *env) required(name string) string {
	v := e.text(name, "")
	if v == "" {
		e.fault(name, "is required")
	}
	return v
}

func (e *env) duration(name string, standard time.Duration) time.Duration {
	v := e.text(name, standard.String())
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		e.fault(name, "%q is not a positive duration such as 90s or 5m", v)
	}
	return d
}

func (e *env) count(name string, standard int) int {
	v := e.text(name, strconv.Itoa(standard))
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		e.fault(name, "%q is not a whole number from 1", v)
	}
	return n
}

func (e *env) address(name, standard string) string {
	v := e.text(name, standard)
	_, port, err := net.SplitHostPort(v)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		e.fault(name, "%q is not host:port", v)
	}
	return v
}

// list reads comma-separated values, each at least one character.
func (e *env) list(name string) []string {
	v := e.required(name)
	if v == "" {
		return nil
	}
	list := strings.Split(v, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			e.fault(name, "value %d is empty", i+1)
		}
	}
	return list
}

func (e *env) provider() efa.Config {
	c := efa.Config{BaseURL: e.text("EFA_BASE_URL", ""), Project: e.required("EFA_PROJECT_ID"), Key: e.required("EFA_API_KEY")}
	if c.Project == "" || c.Key == "" {
		return c
	}
	if _, err := efa.New(c); err != nil {
		e.fault("EFA_BASE_URL, EFA_PROJECT_ID, EFA_API_KEY", "%v", err)
	}
	return c
}

func (e *env) inboxes() map[string][]string {
	own := e.list("EFA_INBOX_ADDRESS")
	for i, a := range own {
		if _, err := client.NormalizeAddress(a); a != "" && err != nil {
			e.fault("EFA_INBOX_ADDRESS", "value %d is not an e-mail address", i+1)
		}
	}
	inboxes := map[string][]string{}
	for _, id := range e.list("AGENT_INBOX_IDS") {
		inboxes[id] = own
	}
	return inboxes
}

func (e *env) database() string {
	v := e.text("DATABASE_URL", "sqlite:replywake.db")
	path, lite := strings.CutPrefix(v, "sqlite:")
	switch {
	case lite && (path == "" || strings.HasPrefix(path, ":")):
		e.fault("DATABASE_URL", "sqlite: needs the path of a file")
	case lite:
	case !strings.HasPrefix(v, "postgres://") && !strings.HasPrefix(v, "postgresql://"):
		e.fault("DATABASE_URL", "is neither postgres://… nor sqlite:PATH")
	default:
		if _, err := pgxpool.ParseConfig(v); err != nil {
			e.fault("DATABASE_URL", "is not a Postgres URL") // the error may quote a password
		}
	}
	return v
}

// secrets sets up what verifies webhooks: the current secret, and until a set
// time the previous one too.
func (e *env) secrets(now time.Time) (c verify.Config, previousEnds time.Time) {
	const current, previous, until, status = "EFA_WEBHOOK_SECRET", "EFA_WEBHOOK_SECRET_PREVIOUS", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL", "EFA_VERIFY_FAIL_STATUS"
	switch s := e.text(status, "400"); s {
	case "400", "401", "503":
		c.FailStatus, _ = strconv.Atoi(s)
	default:
		e.fault(status, "%q is none of 400, 401 and 503", s)
	}
	if text := e.text(current, ""); text != "" {
		c.Secrets = append(c.Secrets, e.secret(current, text))
	}
	text, end := e.text(previous, ""), e.text(until, "")
	switch {
	case text == "" && end != "":
		e.fault(until, "is set without %s", previous)
	case text == "":
	case c.Secrets == nil:
		e.fault(previous, "is set without %s", current)
	default:
		previousEnds = now.Add(24 * time.Hour)
		if end != "" {
			var err error
			if previousEnds, err = time.Parse(time.RFC3339, end); err != nil {
				e.fault(until, "%q is not a time such as 2026-01-31T15:04:05Z", end)
			}
		}
		c.Secrets = append(c.Secrets, e.secret(previous, text).Until(previousEnds))
	}
	return c, previousEnds
}

func (e *env) secret(name, text string) verify.Secret {
	s := verify.RawSecret(text)
	if _, err := verify.New(verify.Config{Secrets: []verify.Secret{s}}); err != nil {
		e.fault(name, "%v", err)
	}
	return s
}
