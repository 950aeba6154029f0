package verify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

func TestVersionsNameTheSecretsInTheirOrder(t *testing.T) {
	t.Parallel()
	c := config()
	end := c.Now().Add(time.Hour)
	c.Secrets = []verify.Secret{verify.RawSecret(rawText), verify.RawSecret(otherText).Version("june").Until(end)}
	v := newVerifier(t, c)
	assert.Equal(t, []verify.Version{{Name: "1", Since: c.Now()}, {Name: "june", Until: end, Since: c.Now()}}, v.Versions())
	assert.NotContains(t, fmt.Sprintf("%+v", v.Versions()), rawText)

	require.NoError(t, v.SetSecrets(verify.RawSecret(otherText).Version("july")))
	assert.Equal(t, []verify.Version{{Name: "july", Since: c.Now()}}, v.Versions())
}

func TestToleranceIsTheConfigs(t *testing.T) {
	t.Parallel()
	c := config()
	assert.Equal(t, verify.DefaultTolerance, newVerifier(t, c).Tolerance())
	c.Tolerance = time.Minute
	assert.Equal(t, time.Minute, newVerifier(t, c).Tolerance())

	var none *verify.Verifier
	assert.Zero(t, none.Tolerance())
	assert.Empty(t, none.Versions())
}

// A name says the same secret for as long as the Verifier lives, or counts by
// name would be of two.
func TestASecretKeepsItsNumber(t *testing.T) {
	t.Parallel()
	c := config()
	now := c.Now()
	c.Now = func() time.Time { return now }
	first := now
	one, two, three := verify.RawSecret(rawText), verify.RawSecret(otherText), verify.Base64Secret(base64Text)
	c.Secrets = []verify.Secret{one, two.Until(now.Add(time.Hour))}
	v := newVerifier(t, c)
	assert.Equal(t, []verify.Version{{Name: "1", Since: first}, {Name: "2", Until: now.Add(time.Hour), Since: first}}, v.Versions())

	now = now.Add(time.Minute)
	require.NoError(t, v.SetSecrets(three, one.Until(now)))
	assert.Equal(t, []verify.Version{{Name: "3", Since: now}, {Name: "1", Until: now, Since: first}}, v.Versions())
	require.NoError(t, v.SetSecrets(three, two))
	assert.Equal(t, []verify.Version{{Name: "3", Since: now}, {Name: "4", Since: now}}, v.Versions(), "it was gone")
	require.NoError(t, v.SetSecrets(three, three))
	assert.Equal(t, []verify.Version{{Name: "3", Since: now}, {Name: "5", Since: now}}, v.Versions())

	require.Error(t, v.SetSecrets(one.Version("6"), two))
	require.NoError(t, v.SetSecrets(three.Version("current"), one.Version("previous")))
	now = now.Add(time.Minute)
	require.NoError(t, v.SetSecrets(two.Version("current"), three.Version("previous")))
	assert.Equal(t, []verify.Version{{Name: "current", Since: now}, {Name: "previous", Since: now}}, v.Versions(), "a name of another secret before")
	since := now
	now = now.Add(time.Minute)
	require.NoError(t, v.SetSecrets(two.Version("current")))
	assert.Equal(t, []verify.Version{{Name: "current", Since: since}}, v.Versions())
}
