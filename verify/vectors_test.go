package verify_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// The vectors are JSON so that a receiver in another language can run them.

type vectorFile struct {
	Cases []vector `json:"cases"`
}

type vector struct {
	Group   string         `json:"group"`
	Name    string         `json:"name"`
	Outcome string         `json:"outcome"`
	Now     int64          `json:"now"`
	Secrets []vectorSecret `json:"secrets"`
	Headers []headerLine   `json:"headers"`
	Body    vectorBody     `json:"body"`
}

type vectorSecret struct {
	Encoding string `json:"encoding"`
	Text     string `json:"text"`
	Until    int64  `json:"until"`
}

func (s vectorSecret) secret() verify.Secret {
	secret := verify.RawSecret(s.Text)
	if s.Encoding == "base64" {
		secret = verify.Base64Secret(s.Text)
	}
	if s.Until != 0 {
		secret = secret.Until(time.Unix(s.Until, 0))
	}
	return secret
}

// headerLine is [name, text, times, lines].
type headerLine struct {
	name, text   string
	times, lines int
}

func (l *headerLine) UnmarshalJSON(data []byte) error {
	l.times, l.lines = 1, 1
	return json.Unmarshal(data, &[]any{&l.name, &l.text, &l.times, &l.lines})
}

type vectorBody struct {
	Text   string `json:"text"`
	Base64 string `json:"base64"`
	Times  int    `json:"times"`
}

func (b vectorBody) bytes(t *testing.T) []byte {
	t.Helper()
	if b.Base64 != "" {
		body, err := base64.StdEncoding.DecodeString(b.Base64)
		require.NoError(t, err)
		return body
	}
	return []byte(strings.Repeat(b.Text, max(1, b.Times)))
}

// header keeps the names' spelling, which http.Header.Add would not.
func (v vector) header() http.Header {
	h := http.Header{}
	for _, line := range v.Headers {
		value := strings.Repeat(line.text, line.times)
		for range line.lines {
			h[line.name] = append(h[line.name], value)
		}
	}
	return h
}

func (v vector) verifier(t *testing.T) *verify.Verifier {
	t.Helper()
	var secrets []verify.Secret
	for _, s := range v.Secrets {
		secrets = append(secrets, s.secret())
	}
	verifier, err := verify.New(verify.Config{Secrets: secrets, Now: at(v.Now)})
	require.NoError(t, err)
	return verifier
}

var outcomes = map[string]error{
	"verified":            nil,
	"missing_header":      verify.ErrMissingHeader,
	"ambiguous_header":    verify.ErrAmbiguousHeader,
	"malformed_id":        verify.ErrMalformedID,
	"malformed_timestamp": verify.ErrMalformedTimestamp,
	"timestamp":           verify.ErrTimestamp,
	"malformed_signature": verify.ErrMalformedSignature,
	"no_match":            verify.ErrNoMatch,
}

func readVectors(t testing.TB, path string) []vector {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var file vectorFile
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Cases)
	return file.Cases
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"testdata/vectors.json", "testdata/cases.json"} {
		for _, v := range readVectors(t, path) {
			t.Run(v.Group+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				checkVector(t, v)
			})
		}
	}
}

func checkVector(t *testing.T, v vector) {
	want, known := outcomes[v.Outcome]
	require.True(t, known, "outcome %q", v.Outcome)
	d, err := v.verifier(t).Verify(v.header(), v.Body.bytes(t))
	if want == nil {
		require.NoError(t, err)
		assert.NotEmpty(t, d.ID)
		assert.NotEmpty(t, d.SecretVersion)
		assert.InDelta(t, v.Now, d.Timestamp.Unix(), 300)
		return
	}
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, err, verify.ErrUnverified)
	assert.Zero(t, d)
	checkErrorText(t, err, v)
}

// checkErrorText makes sure that an error is short, on one line, and says
// nothing that the sender or the secret said.
func checkErrorText(t *testing.T, err error, v vector) {
	t.Helper()
	text := err.Error()
	assert.Less(t, len(text), 200)
	assert.NotContains(t, text, "\n")
	for _, line := range v.Headers {
		if len(line.text) > 3 {
			assert.NotContains(t, text, line.text)
		}
	}
	for _, s := range v.Secrets {
		assert.NotContains(t, text, s.Text)
	}
}

// Each outcome of the vectors is one cause and no other.
func TestOutcomesAreDistinct(t *testing.T) {
	t.Parallel()
	for name, err := range outcomes {
		for other, sentinel := range outcomes {
			if sentinel != nil && err != nil && name != other {
				assert.NotErrorIs(t, err, sentinel)
			}
		}
	}
}
