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
	assert.Equal(t, []verify.Version{{Name: "1"}, {Name: "june", Until: end}}, v.Versions())
	assert.NotContains(t, fmt.Sprintf("%+v", v.Versions()), rawText)

	require.NoError(t, v.SetSecrets(verify.RawSecret(otherText).Version("july")))
	assert.Equal(t, []verify.Version{{Name: "july"}}, v.Versions())
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
