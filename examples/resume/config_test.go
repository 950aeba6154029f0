package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// goodEnv is the smallest environment of a service, changed by pairs of name
// and value.
func goodEnv(changes ...string) map[string]string {
	env := map[string]string{
		"EFA_PROJECT_ID":    "prj_1",
		"EFA_API_KEY":       "efa_test_key",
		"AGENT_INBOX_IDS":   "ibx_a",
		"EFA_INBOX_ADDRESS": "agent@example.com",
	}
	for i := 0; i < len(changes); i += 2 {
		env[changes[i]] = changes[i+1]
	}
	return env
}

func load(env map[string]string) (config, error) {
	return loadConfig(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}, noon)
}

const (
	secretNow    = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	secretBefore = "ffffffffffffffffffffffffffffffff"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c, err := load(goodEnv())
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"ibx_a": {"agent@example.com"}}, c.Provider.Inboxes)
	require.Equal(t, "/hooks/efa", c.Provider.Path)
	require.Equal(t, "efa:prj_1", c.Provider.Mail.Stream().Name)
	require.Equal(t, "sqlite:replywake.db", c.Database)
	require.Equal(t, []any{"127.0.0.1:8080", "127.0.0.1:8081", ""}, []any{c.Listen, c.Admin, c.AdminToken})
	require.Equal(t, []any{time.Minute, 30 * time.Second, time.Minute, 20}, []any{c.SweepEvery, c.Lease, c.SendRetryAfter, c.MaxSendsPerHour})
	require.Equal(t, events.FromNow, c.SweepStart)
	require.Equal(t, 400, c.Provider.Verify.FailStatus)
	require.False(t, c.Provider.hasWebhook())
}

func TestConfigTakesEveryVariable(t *testing.T) {
	t.Parallel()
	c, err := load(goodEnv(
		"EFA_BASE_URL", "https://efa.example/v1",
		"EFA_WEBHOOK_SECRET", secretNow,
		"EFA_WEBHOOK_SECRET_PREVIOUS", secretBefore,
		"EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL", "2026-03-01T14:00:00+01:00",
		"EFA_VERIFY_FAIL_STATUS", "503",
		"AGENT_INBOX_IDS", "ibx_a, ibx_b",
		"EFA_INBOX_ADDRESS", "agent@example.com,sales@example.com",
		"DATABASE_URL", "postgres://user:pw@db.example/replywake",
		"LISTEN_ADDR", ":8000",
		"ADMIN_ADDR", "[::1]:0",
		"ADMIN_TOKEN", "open sesame",
		"SWEEP_EVERY", "400ms",
		"SWEEP_START", "beginning",
		"LEASE", "2s",
		"SEND_RETRY_AFTER", "1s",
		"MAX_SENDS_PER_HOUR", "7",
	))
	require.NoError(t, err)
	require.Equal(t, "https://efa.example/v1/projects/prj_1", c.Provider.Source.Stream().Origin)
	own := []string{"agent@example.com", "sales@example.com"}
	require.Equal(t, map[string][]string{"ibx_a": own, "ibx_b": own}, c.Provider.Inboxes)
	require.Len(t, c.Provider.Verify.Secrets, 2)
	require.True(t, c.Provider.Previous.Equal(noon.Add(time.Hour)))
	require.Equal(t, 503, c.Provider.Verify.FailStatus)
	require.Equal(t, events.FromBeginning, c.SweepStart)
	require.Equal(t, []any{400 * time.Millisecond, 2 * time.Second, time.Second, 7}, []any{c.SweepEvery, c.Lease, c.SendRetryAfter, c.MaxSendsPerHour})
}

func TestPreviousSecretEndsAfterADay(t *testing.T) {
	t.Parallel()
	c, err := load(goodEnv("EFA_WEBHOOK_SECRET", secretNow, "EFA_WEBHOOK_SECRET_PREVIOUS", secretBefore))
	require.NoError(t, err)
	require.Equal(t, noon.Add(24*time.Hour), c.Provider.Previous)
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		want string // begins a line of the error
	}{
		"no project":                 {[]string{"EFA_PROJECT_ID", ""}, "EFA_PROJECT_ID: is required"},
		"no key":                     {[]string{"EFA_API_KEY", ""}, "EFA_API_KEY: is required"},
		"no inbox":                   {[]string{"AGENT_INBOX_IDS", ""}, "AGENT_INBOX_IDS: is required"},
		"an empty inbox":             {[]string{"AGENT_INBOX_IDS", "ibx_a,,ibx_b"}, "AGENT_INBOX_IDS: value 2 is empty"},
		"no address":                 {[]string{"EFA_INBOX_ADDRESS", ""}, "EFA_INBOX_ADDRESS: is required"},
		"not an address":             {[]string{"EFA_INBOX_ADDRESS", "a@example.com, agent"}, "EFA_INBOX_ADDRESS: value 2 is not an e-mail address"},
		"base URL":                   {[]string{"EFA_BASE_URL", "ftp://efa.example"}, "EFA_BASE_URL: "},
		"project is a URL":           {[]string{"EFA_PROJECT_ID", "https://x/prj_1"}, "EFA_PROJECT_ID: "},
		"short secret":               {[]string{"EFA_WEBHOOK_SECRET", "short"}, "EFA_WEBHOOK_SECRET: "},
		"secret with a line end":     {[]string{"EFA_WEBHOOK_SECRET", secretNow + "\n"}, "EFA_WEBHOOK_SECRET: "},
		"short previous secret":      {[]string{"EFA_WEBHOOK_SECRET", secretNow, "EFA_WEBHOOK_SECRET_PREVIOUS", "short"}, "EFA_WEBHOOK_SECRET_PREVIOUS: "},
		"previous secret alone":      {[]string{"EFA_WEBHOOK_SECRET_PREVIOUS", secretBefore}, "EFA_WEBHOOK_SECRET_PREVIOUS: is set without EFA_WEBHOOK_SECRET"},
		"until without previous":     {[]string{"EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL", "2026-03-01T14:00:00Z"}, "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL: is set without EFA_WEBHOOK_SECRET_PREVIOUS"},
		"until is no time":           {[]string{"EFA_WEBHOOK_SECRET", secretNow, "EFA_WEBHOOK_SECRET_PREVIOUS", secretBefore, "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL", "tomorrow"}, "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL: "},
		"fail status 200":            {[]string{"EFA_VERIFY_FAIL_STATUS", "200"}, `EFA_VERIFY_FAIL_STATUS: "200" is none of 400, 401, 503`},
		"fail status 410":            {[]string{"EFA_VERIFY_FAIL_STATUS", "410"}, "EFA_VERIFY_FAIL_STATUS: "},
		"fail status, a word":        {[]string{"EFA_VERIFY_FAIL_STATUS", "bad"}, "EFA_VERIFY_FAIL_STATUS: "},
		"another database":           {[]string{"DATABASE_URL", "mysql://db.example"}, "DATABASE_URL: is neither"},
		"Postgres URL":               {[]string{"DATABASE_URL", "postgres://u:hunter2@db.example:port/x"}, "DATABASE_URL: is not a Postgres URL"},
		"SQLite without a path":      {[]string{"DATABASE_URL", "sqlite:"}, "DATABASE_URL: sqlite: needs the path of a file"},
		"SQLite in memory":           {[]string{"DATABASE_URL", "sqlite::memory:"}, "DATABASE_URL: sqlite: needs the path of a file"},
		"listen without a port":      {[]string{"LISTEN_ADDR", "localhost"}, `LISTEN_ADDR: "localhost" is not host:port`},
		"listen, port too high":      {[]string{"LISTEN_ADDR", ":70000"}, "LISTEN_ADDR: "},
		"admin address":              {[]string{"ADMIN_ADDR", "8081"}, "ADMIN_ADDR: "},
		"both at one address":        {[]string{"ADMIN_TOKEN", "t", "ADMIN_ADDR", ":1", "LISTEN_ADDR", ":1"}, "ADMIN_ADDR: is where LISTEN_ADDR is"},
		"sweep every, no unit":       {[]string{"SWEEP_EVERY", "60"}, `SWEEP_EVERY: "60" is not a positive duration`},
		"sweep every 0":              {[]string{"SWEEP_EVERY", "0s"}, "SWEEP_EVERY: "},
		"sweep start":                {[]string{"SWEEP_START", "yesterday"}, `SWEEP_START: "yesterday" is neither beginning nor now`},
		"lease, negative":            {[]string{"LEASE", "-1s"}, "LEASE: "},
		"send retry after, a word":   {[]string{"SEND_RETRY_AFTER", "soon"}, "SEND_RETRY_AFTER: "},
		"max sends 0":                {[]string{"MAX_SENDS_PER_HOUR", "0"}, `MAX_SENDS_PER_HOUR: "0" is not a whole number from 1`},
		"max sends, not whole":       {[]string{"MAX_SENDS_PER_HOUR", "1.5"}, "MAX_SENDS_PER_HOUR: "},
		"key of another kind":        {[]string{"EFA_API_KEY", "sk_live_efa_test_key"}, "EFA_API_KEY: does not begin with efa_live_ or efa_test_"},
		"SQLite in no folder":        {[]string{"DATABASE_URL", "sqlite:/nowhere/replywake.db"}, `DATABASE_URL: the folder of "/nowhere/replywake.db" is not there`},
		"SQLite below a file":        {[]string{"DATABASE_URL", "sqlite:config_test.go/replywake.db"}, "DATABASE_URL: the folder of "},
		"SQLite at a folder":         {[]string{"DATABASE_URL", "sqlite:."}, `DATABASE_URL: "." is a folder`},
		"SQLite where none can be":   {[]string{"DATABASE_URL", "sqlite:/proc/replywake.db"}, "DATABASE_URL: the folder of "},
		"SQLite at a device":         {[]string{"DATABASE_URL", "sqlite:" + os.DevNull}, `DATABASE_URL: "` + os.DevNull + `" is not a file`},
		"SQLite at another file":     {[]string{"DATABASE_URL", "sqlite:config_test.go"}, `DATABASE_URL: "config_test.go" is not a SQLite database`},
		"lease, too short":           {[]string{"LEASE", "1ns"}, `LEASE: "1ns" is not from 1ms to 8760h0m0s`},
		"send retry after, too long": {[]string{"SEND_RETRY_AFTER", "2000000h"}, "SEND_RETRY_AFTER: "},
		"another provider":           {[]string{"PROVIDER", "EFA"}, `PROVIDER: "EFA" is neither efa nor goshen`},
		"key with a line end in it":  {[]string{"EFA_API_KEY", "efa_test_key\n"}, "EFA_API_KEY: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFault(t, goodEnv(c.env...), c.want)
		})
	}
}

// wantFault wants one fault, on a line that begins so and shows no secret.
func wantFault(t *testing.T, env map[string]string, want string) {
	t.Helper()
	_, err := load(env)
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), want), "%v", err)
	require.NotContains(t, err.Error(), "\n", "one fault is one line")
	for _, secret := range []string{"efa_test_key", "bze_key", "hunter2", secretNow, secretBefore, goshenNow, goshenBefore} {
		require.NotContains(t, err.Error(), secret)
	}
}

// No fault hides behind another: what is set is checked, whatever is missing.
func TestConfigReportsEveryFault(t *testing.T) {
	t.Parallel()
	wantFaults(t, map[string]string{
		"EFA_BASE_URL": "efa.example", "EFA_VERIFY_FAIL_STATUS": "200",
		"EFA_WEBHOOK_SECRET_PREVIOUS": "short", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL": "tomorrow",
		"SWEEP_EVERY": "x", "LEASE": "y", "DATABASE_URL": "z", "SWEEP_START": "q", "SEND_RETRY_AFTER": "s", "MAX_SENDS_PER_HOUR": "m",
		"ADMIN_TOKEN": "t", "ADMIN_ADDR": ":8080",
	},
		"EFA_PROJECT_ID", "EFA_API_KEY", "EFA_INBOX_ADDRESS", "AGENT_INBOX_IDS",
		"EFA_BASE_URL", "EFA_VERIFY_FAIL_STATUS", "EFA_WEBHOOK_SECRET_PREVIOUS", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL",
		"SWEEP_EVERY", "LEASE", "DATABASE_URL", "SWEEP_START", "SEND_RETRY_AFTER", "MAX_SENDS_PER_HOUR", "ADMIN_ADDR")
	wantFaults(t, map[string]string{
		"EFA_PROJECT_ID": "a/b", "EFA_API_KEY": "k", "EFA_WEBHOOK_SECRET": "short", "EFA_INBOX_ADDRESS": "agent", "AGENT_INBOX_IDS": ",",
		"EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL": "tomorrow",
	}, "EFA_PROJECT_ID", "EFA_API_KEY", "EFA_WEBHOOK_SECRET", "EFA_INBOX_ADDRESS", "AGENT_INBOX_IDS", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL")
	wantFaults(t, map[string]string{"PROVIDER": "resend", "LEASE": "y"}, "PROVIDER", "LEASE")
	wantFaults(t, map[string]string{"GOSHEN_API_KEY": "bze_key", "GOSHEN_INBOXES": "agent@example.com"},
		"PROVIDER", "EFA_PROJECT_ID", "EFA_API_KEY", "EFA_INBOX_ADDRESS", "AGENT_INBOX_IDS")
}

// wantFaults wants faults of these variables and of no other.
func wantFaults(t *testing.T, env map[string]string, want ...string) {
	t.Helper()
	_, err := load(env)
	require.Error(t, err)
	named := map[string]bool{}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		name, _, _ := strings.Cut(line, ":")
		named[name] = true
	}
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(named)))
}

func TestEmptyIsUnset(t *testing.T) {
	t.Parallel()
	env := goodEnv()
	for _, name := range []string{
		"PROVIDER", "EFA_BASE_URL", "EFA_WEBHOOK_SECRET", "EFA_WEBHOOK_SECRET_PREVIOUS", "EFA_WEBHOOK_SECRET_PREVIOUS_UNTIL",
		"EFA_VERIFY_FAIL_STATUS", "DATABASE_URL", "LISTEN_ADDR", "ADMIN_ADDR", "ADMIN_TOKEN", "SWEEP_EVERY", "SWEEP_START",
		"LEASE", "SEND_RETRY_AFTER", "MAX_SENDS_PER_HOUR",
	} {
		env[name] = ""
	}
	c, err := load(env)
	require.NoError(t, err)
	standard, err := load(goodEnv())
	require.NoError(t, err)
	c.Provider, standard.Provider = provider{}, provider{} // compared elsewhere
	require.Equal(t, standard, c)
}

func TestAddressesThatCollide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, admin string
		want          bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "localhost:8080", true},
		{"127.0.0.1:8080", "LOCALHOST:08080", true},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true},
		{":8080", "127.0.0.1:8080", true},
		{"0.0.0.0:8080", "10.0.0.1:8080", true},
		{"[::]:8080", ":8080", true},
		{"[::1]:8080", "[0:0:0:0:0:0:0:1]:8080", true},
		{"a.example:8080", "A.example:8080", true},

		{"127.0.0.1:8080", "127.0.0.1:8081", false},
		{"127.0.0.1:8080", "10.0.0.1:8080", false},
		{"127.0.0.1:8080", "[::1]:8080", false},
		{"a.example:8080", "b.example:8080", false},
		{"127.0.0.1:0", "127.0.0.1:0", false}, // two free ports
		{"localhost", "localhost", false},     // which is another fault
	} {
		require.Equal(t, c.want, collide(c.listen, c.admin), "%s and %s", c.listen, c.admin)
		require.Equal(t, c.want, collide(c.admin, c.listen), "%s and %s", c.admin, c.listen)
	}
}
