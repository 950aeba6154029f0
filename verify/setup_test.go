package verify_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

const (
	rawText    = "0123456789abcdef0123456789abcdef"
	base64Text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherText  = "fedcba9876543210fedcba9876543210"

	messageID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	seconds   = 1614265330
	payload   = `{"test": 2432232314}`
)

func at(seconds int64) func() time.Time {
	return func() time.Time { return time.Unix(seconds, 0) }
}

// config has one raw secret and the clock of the vectors.
func config() verify.Config {
	return verify.Config{Secrets: []verify.Secret{verify.RawSecret(rawText)}, Now: at(seconds)}
}

func newVerifier(t testing.TB, c verify.Config) *verify.Verifier {
	t.Helper()
	v, err := verify.New(c)
	require.NoError(t, err)
	return v
}

func signed(t testing.TB, body []byte) http.Header {
	t.Helper()
	return signedWith(t, verify.RawSecret(rawText), body)
}

func signedWith(t testing.TB, secret verify.Secret, body []byte) http.Header {
	t.Helper()
	h, err := verify.Sign(secret, messageID, time.Unix(seconds, 0), body)
	require.NoError(t, err)
	return h
}
