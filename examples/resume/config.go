package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// config is the environment, checked. The variables:
//
//	PROVIDER            efa (default) or goshen; each has variables of its own, below
//	DATABASE_URL        postgres://… or sqlite:PATH; default sqlite:replywake.db
//	LISTEN_ADDR         the webhook door, /healthz, /readyz; default 127.0.0.1:8080
//	ADMIN_ADDR          everything else; default 127.0.0.1:8081
//	ADMIN_TOKEN         unset: nothing listens at ADMIN_ADDR
//	SWEEP_EVERY         default 1m
//	SWEEP_START         beginning, or now (default)
//	LEASE               how long a run may stand without a heartbeat; default 30s
//	SEND_RETRY_AFTER    a send without an outcome is tried again after this; default 1m
//	MAX_SENDS_PER_HOUR  loop cap per workflow; default 20
//
// Email for Agents, whose door is /hooks/efa:
//
//	EFA_BASE_URL                       default the public one
//	EFA_PROJECT_ID, EFA_API_KEY        required
//	EFA_WEBHOOK_SECRET                 unset: no webhook door, sweep only
//	EFA_WEBHOOK_SECRET_PREVIOUS        the secret before it, while it is being replaced
//	EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL  RFC 3339; default 24 h after the start
//	EFA_VERIFY_FAIL_STATUS             400 (default), 401 or 503 for what does not verify
//	AGENT_INBOX_IDS                    required; comma-separated: others are acknowledged and ignored
//	EFA_INBOX_ADDRESS                  required; our own addresses, comma-separated
//
// Goshen Email, whose door is /hooks/goshen:
//
//	GOSHEN_BASE_URL                       default the public one
//	GOSHEN_API_KEY                        required
//	GOSHEN_INBOXES                        required; comma-separated addresses: others are acknowledged and ignored
//	GOSHEN_STREAM                         names what is stored; required with several inboxes
//	GOSHEN_HANDLED_LABEL                  what swept mail gets instead of unread; default handled
//	GOSHEN_WEBHOOK_SECRET                 whsec_…; unset: no webhook door, sweep only
//	GOSHEN_WEBHOOK_SECRET_PREVIOUS        the secret before it, while it is being replaced
//	GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL  RFC 3339; default 24 h after the start
type config struct {
	Provider provider
	Database string

	Listen, Admin, AdminToken string

	SweepEvery      time.Duration
	SweepStart      events.Start
	Lease           time.Duration
	SendRetryAfter  time.Duration
	MaxSendsPerHour int
}

// loadConfig reads the environment and reports every fault of it at once. No
// fault shows a secret.
func loadConfig(lookup func(string) (string, bool), now time.Time) (config, error) {
	e := &env{lookup: lookup, now: now}
	c := config{
		Provider:        e.provider(),
		Database:        e.database(),
		Listen:          e.address("LISTEN_ADDR", "127.0.0.1:8080"),
		Admin:           e.address("ADMIN_ADDR", "127.0.0.1:8081"),
		AdminToken:      e.text("ADMIN_TOKEN", ""),
		SweepEvery:      e.duration("SWEEP_EVERY", time.Minute),
		Lease:           e.duration("LEASE", 30*time.Second),
		SendRetryAfter:  e.duration("SEND_RETRY_AFTER", time.Minute),
		MaxSendsPerHour: e.count("MAX_SENDS_PER_HOUR", 20),
	}
	switch start := e.text("SWEEP_START", "now"); start {
	case "now":
		c.SweepStart = events.FromNow
	case "beginning":
		c.SweepStart = events.FromBeginning
	default:
		e.fault("SWEEP_START", "%q is neither beginning nor now", start)
	}
	if c.AdminToken != "" && collide(c.Listen, c.Admin) {
		e.fault("ADMIN_ADDR", "is where LISTEN_ADDR is: the admin routes must not be where strangers are")
	}
	return c, errors.Join(e.faults...)
}

type env struct {
	lookup func(string) (string, bool)
	now    time.Time
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
	switch {
	case err != nil || d <= 0:
		e.fault(name, "%q is not a positive duration such as 90s or 5m", v)
	case d < shortest || d > longest:
		e.fault(name, "%q is not from %s to %s", v, shortest, longest)
	}
	return d
}

// What any duration may be: ten times as much is still one.
const (
	shortest = time.Millisecond
	longest  = 365 * 24 * time.Hour
)

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

func (e *env) database() string {
	v := e.text("DATABASE_URL", "sqlite:replywake.db")
	path, lite := strings.CutPrefix(v, "sqlite:")
	switch {
	case lite && (path == "" || strings.HasPrefix(path, ":")):
		e.fault("DATABASE_URL", "sqlite: needs the path of a file")
	case lite:
		e.file("DATABASE_URL", path)
	case !strings.HasPrefix(v, "postgres://") && !strings.HasPrefix(v, "postgresql://"):
		e.fault("DATABASE_URL", "is neither postgres://… nor sqlite:PATH")
	default:
		if _, err := pgxpool.ParseConfig(v); err != nil {
			e.fault("DATABASE_URL", "is not a Postgres URL") // the error may quote a password
		}
	}
	return v
}

// file wants a path at which a SQLite database is or can be. Other files stand
// beside it while it is open.
func (e *env) file(name, path string) {
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		e.fault(name, "the folder of %q is not there", path)
		return
	}
	there, err := os.Stat(path)
	switch {
	case err == nil && there.IsDir():
		e.fault(name, "%q is a folder", path)
	case err == nil && !there.Mode().IsRegular():
		e.fault(name, "%q is not a file", path)
	case !canWriteBeside(path):
		e.fault(name, "the folder of %q cannot be written to", path)
	case err == nil:
		e.sqliteFile(name, path)
	}
}

func canWriteBeside(path string) bool {
	f, err := os.CreateTemp(filepath.Dir(path), ".replywake-*")
	if err != nil {
		return false
	}
	_ = f.Close()
	return os.Remove(f.Name()) == nil
}

// sqliteFile looks at a file's first bytes. An empty one is a database too.
func (e *env) sqliteFile(name, path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // whoever sets it may name any file
	if err != nil {
		e.fault(name, "%q cannot be written to", path)
		return
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, len(sqliteBegins))
	if n, _ := io.ReadFull(f, begin); n > 0 && string(begin) != sqliteBegins {
		e.fault(name, "%q is not a SQLite database", path)
	}
}

const sqliteBegins = "SQLite format 3\x00"

// status reads an HTTP status, one of a few; the first is the default.
func (e *env) status(name string, allowed ...string) int {
	v := e.text(name, allowed[0])
	if !slices.Contains(allowed, v) {
		e.fault(name, "%q is none of %s", v, strings.Join(allowed, ", "))
	}
	n, _ := strconv.Atoi(v)
	return n
}

// secrets reads what verifies webhooks: the current secret, and until a set
// time the previous one too. Each is checked, whether the others are set or not.
func (e *env) secrets(of func(string) verify.Secret, current, previous, until string) (list []verify.Secret, previousEnds time.Time) {
	now, before := e.secret(current, of), e.secret(previous, of)
	end := e.time(until, e.now.Add(24*time.Hour))
	switch {
	case before == nil && e.text(until, "") != "":
		e.fault(until, "is set without %s", previous)
	case before != nil && now == nil:
		e.fault(previous, "is set without %s", current)
	}
	if before == nil {
		return now, time.Time{}
	}
	return append(now, before[0].Until(end)), end
}

// secret is a list of one, or of none if the variable is not set.
func (e *env) secret(name string, of func(string) verify.Secret) []verify.Secret {
	text := e.text(name, "")
	if text == "" {
		return nil
	}
	list := []verify.Secret{of(text)}
	if _, err := verify.New(verify.Config{Secrets: list}); err != nil {
		e.fault(name, "%v", err)
	}
	return list
}

func (e *env) time(name string, standard time.Time) time.Time {
	v := e.text(name, "")
	if v == "" {
		return standard
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		e.fault(name, "%q is not a time such as 2026-01-31T15:04:05Z", v)
	}
	return t
}

// collide says whether two addresses cannot both be listened on, however they
// are spelled: they have one port, and one host or all of them.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	numberA, _ := strconv.ParseUint(portA, 10, 16)
	numberB, _ := strconv.ParseUint(portB, 10, 16)
	if errA != nil || errB != nil || numberA != numberB || numberA == 0 {
		return false
	}
	ipA, ipB := ipOf(hostA), ipOf(hostB)
	return ipA.IsUnspecified() || ipB.IsUnspecified() || ipA == ipB && (ipA.IsValid() || strings.EqualFold(hostA, hostB))
}

// ipOf is not valid for a name that must be looked up.
func ipOf(host string) netip.Addr {
	switch strings.ToLower(host) {
	case "":
		return netip.IPv6Unspecified()
	case "localhost":
		host = "127.0.0.1"
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap()
}
