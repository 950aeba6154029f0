package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
)

const (
	goshenNow    = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	goshenBefore = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
)

// goshenEnv is the smallest environment of a service on Goshen Email, changed
// by pairs of name and value.
func goshenEnv(changes ...string) map[string]string {
	env := map[string]string{
		"PROVIDER":       "goshen",
		"GOSHEN_API_KEY": "bze_key",
		"GOSHEN_INBOXES": "agent@goshen.example",
	}
	for i := 0; i < len(changes); i += 2 {
		env[changes[i]] = changes[i+1]
	}
	return env
}

func TestServiceOrDemonstration(t *testing.T) {
	t.Parallel()
	for _, demo := range [][]string{
		{"PATH=/bin", "DATABASE_URL=sqlite:x", "NOT_EFA_X=1", "EFA=1", "AGENT_INBOX_IDS=x"},
		{"PROVIDER=goshen"},
		{"PROVIDER=efa"},
		{"PROVIDER="},
	} {
		require.False(t, isService(demo), demo)
	}
	for _, service := range [][]string{
		{"PATH=/bin", "EFA_API_KEY=k"},
		{"PATH=/bin", "EFA_API_KEY="}, // set to nothing is set: it was meant to be a service
		{"GOSHEN_INBOXES=a@example.com"},
		{"PROVIDER=goshen", "EFA_API_KEY=k"},
		{"PROVIDER=gmail"}, // whose fault must be told
	} {
		require.True(t, isService(service), service)
	}
}

func TestEveryProviderHasAFake(t *testing.T) {
	t.Parallel()
	require.Len(t, fakes, len(providers))
	for name := range providers {
		require.Contains(t, fakes, name)
	}
}

func TestGoshenDefaults(t *testing.T) {
	t.Parallel()
	c, err := load(goshenEnv())
	require.NoError(t, err)
	p := c.Provider
	require.Equal(t, map[string][]string{"agent@goshen.example": {"agent@goshen.example"}}, p.Inboxes)
	require.Equal(t, "/hooks/goshen", p.Path)
	require.Equal(t, "goshen:agent@goshen.example", p.Mail.Stream().Name)
	require.Equal(t, p.Mail.Stream(), p.Source.Stream())
	require.False(t, p.hasWebhook())
	require.Equal(t, events.FromNow, c.SweepStart)
}

func TestGoshenTakesEveryVariable(t *testing.T) {
	t.Parallel()
	c, err := load(goshenEnv(
		"GOSHEN_API_KEY", "gme_key",
		"GOSHEN_INBOXES", "agent@goshen.example, sales@goshen.example",
		"GOSHEN_BASE_URL", "https://goshen.example/v1",
		"GOSHEN_STREAM", "office",
		"GOSHEN_HANDLED_LABEL", "seen by the agent",
		"GOSHEN_WEBHOOK_SECRET", goshenNow,
		"GOSHEN_WEBHOOK_SECRET_PREVIOUS", goshenBefore,
		"GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL", "2026-03-01T14:00:00+01:00",
		// What another provider has does not matter.
		"EFA_API_KEY", "nothing", "EFA_BASE_URL", "nothing", "EFA_WEBHOOK_SECRET", "short", "AGENT_INBOX_IDS", ",",
	))
	require.NoError(t, err)
	own := []string{"agent@goshen.example", "sales@goshen.example"}
	require.Equal(t, map[string][]string{own[0]: own, own[1]: own}, c.Provider.Inboxes)
	require.Equal(t, "office", c.Provider.Mail.Stream().Name)
	require.Equal(t, "https://goshen.example/v1", c.Provider.Mail.Stream().Origin)
	require.Len(t, c.Provider.Verify.Secrets, 2)
	require.True(t, c.Provider.Previous.Equal(noon.Add(time.Hour)))
}

func TestGoshenFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		want string // begins the error
	}{
		"no key":                   {[]string{"GOSHEN_API_KEY", ""}, "GOSHEN_API_KEY: is required"},
		"key of another kind":      {[]string{"GOSHEN_API_KEY", "efa_test_bze_key"}, "GOSHEN_API_KEY: does not begin with bze_ or gme_"},
		"key with a blank in it":   {[]string{"GOSHEN_API_KEY", "bze_key x"}, "GOSHEN_API_KEY: "},
		"no inbox":                 {[]string{"GOSHEN_INBOXES", ""}, "GOSHEN_INBOXES: is required"},
		"an empty inbox":           {[]string{"GOSHEN_INBOXES", "a@b.example,", "GOSHEN_STREAM", "s"}, "GOSHEN_INBOXES: value 2 is empty"},
		"not an address":           {[]string{"GOSHEN_INBOXES", "ibx_a"}, "GOSHEN_INBOXES: value 1 is not an e-mail address in lower case"},
		"capitals":                 {[]string{"GOSHEN_INBOXES", "Agent@goshen.example"}, "GOSHEN_INBOXES: value 1 is not an e-mail address in lower case"},
		"an inbox twice":           {[]string{"GOSHEN_INBOXES", "a@b.example,a@b.example", "GOSHEN_STREAM", "s"}, "GOSHEN_INBOXES: value 2 stands there twice"},
		"several without a stream": {[]string{"GOSHEN_INBOXES", "a@b.example,c@b.example"}, "GOSHEN_STREAM: is required with several inboxes"},
		"a long stream":            {[]string{"GOSHEN_STREAM", string(make([]byte, 201))}, "GOSHEN_STREAM: is over 200 bytes"},
		"base URL":                 {[]string{"GOSHEN_BASE_URL", "goshen.example"}, "GOSHEN_BASE_URL: "},
		"a label of Goshen's":      {[]string{"GOSHEN_HANDLED_LABEL", "unread"}, "GOSHEN_HANDLED_LABEL: "},
		"hexadecimal secret":       {[]string{"GOSHEN_WEBHOOK_SECRET", secretNow}, "GOSHEN_WEBHOOK_SECRET: "},
		"previous secret alone":    {[]string{"GOSHEN_WEBHOOK_SECRET_PREVIOUS", goshenBefore}, "GOSHEN_WEBHOOK_SECRET_PREVIOUS: is set without GOSHEN_WEBHOOK_SECRET"},
		"until without previous":   {[]string{"GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL", "2026-03-01T14:00:00Z"}, "GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL: is set without GOSHEN_WEBHOOK_SECRET_PREVIOUS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFault(t, goshenEnv(c.env...), c.want)
		})
	}
}

func TestGoshenReportsEveryFault(t *testing.T) {
	t.Parallel()
	wantFaults(t, map[string]string{
		"PROVIDER": "goshen", "GOSHEN_BASE_URL": "goshen.example", "GOSHEN_HANDLED_LABEL": "sent",
		"GOSHEN_WEBHOOK_SECRET_PREVIOUS": secretBefore, "GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL": "tomorrow",
		"SWEEP_EVERY": "x",
	},
		"GOSHEN_API_KEY", "GOSHEN_INBOXES", "GOSHEN_BASE_URL", "GOSHEN_HANDLED_LABEL",
		"GOSHEN_WEBHOOK_SECRET_PREVIOUS", "GOSHEN_WEBHOOK_SECRET_PREVIOUS_UNTIL", "SWEEP_EVERY")
}
