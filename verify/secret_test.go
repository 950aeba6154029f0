package verify_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

type secretVector struct {
	Name string `json:"name"`
	vectorSecret
	Fault string `json:"fault"`
}

func TestSecretVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/secrets.json")
	require.NoError(t, err)
	var file struct {
		Secrets []secretVector `json:"secrets"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	for _, s := range file.Secrets {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			checkSecretVector(t, s)
		})
	}
}

// checkSecretVector wants New, SetSecrets and Sign to agree.
func checkSecretVector(t *testing.T, s secretVector) {
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{s.secret()}, Now: at(seconds)})
	setErr := newVerifier(t, config()).SetSecrets(s.secret())
	h, signErr := verify.Sign(s.secret(), messageID, time.Unix(seconds, 0), []byte(payload))
	if s.Fault == "" {
		require.NoError(t, err)
		require.NoError(t, setErr)
		require.NoError(t, signErr)
		_, err = v.Verify(h, []byte(payload))
		require.NoError(t, err)
		return
	}
	for _, err := range []error{err, setErr, signErr} {
		require.ErrorIs(t, err, verify.ErrSecret)
		require.NotErrorIs(t, err, verify.ErrUnverified)
		require.ErrorContains(t, err, s.Fault)
		if text := strings.TrimSpace(s.Text); len(text) > 3 {
			assert.NotContains(t, err.Error(), text)
		}
	}
}

func TestSecretVersionFaults(t *testing.T) {
	t.Parallel()
	raw := verify.RawSecret(rawText)
	for name, secrets := range map[string][]verify.Secret{
		"zero value":            {{}},
		"none":                  {},
		"space in version":      {raw.Version("a b")},
		"long version":          {raw.Version(strings.Repeat("v", 65))},
		"secret as version":     {raw.Version(rawText)},
		"same version twice":    {raw.Version("a"), verify.RawSecret(otherText).Version("a")},
		"version of a position": {raw.Version("2"), verify.RawSecret(otherText)},
		"every one expired":     {raw.Until(time.Unix(seconds-1, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := verify.New(verify.Config{Secrets: secrets, Now: at(seconds)})
			require.ErrorIs(t, err, verify.ErrSecret)
			assert.NotContains(t, err.Error(), rawText)
		})
	}
}

// A Secret and a Verifier say nothing about themselves, wherever they stand.
func TestNothingPrintsTheKey(t *testing.T) {
	t.Parallel()
	type outer struct {
		Secret   verify.Secret
		secret   verify.Secret
		pointer  *verify.Secret
		verifier *verify.Verifier
		Verifier *verify.Verifier
		config   verify.Config
		list     []verify.Secret
	}
	s := verify.RawSecret(rawText)
	v := newVerifier(t, config())
	_, err := v.Verify(signed(t, nil), nil) // so that a keyed state is pooled
	require.NoError(t, err)
	values := []any{
		s, &s, v, *v, config(),
		[]verify.Secret{s},
		map[string]verify.Secret{"a": s},
		outer{s, s, &s, v, v, config(), []verify.Secret{s}},
		&outer{s, s, &s, v, v, config(), nil},
	}
	for _, value := range values {
		for _, verb := range strings.Split("%v %+v %#v %s %q %x %X %d %p %t %T %e %U %08.3f", " ") {
			checkHidden(t, fmt.Sprintf(verb, value))
		}
		checkHidden(t, logged(value))
		// Config holds a function, which JSON refuses, with a text of its own.
		data, err := json.Marshal(value)
		checkHidden(t, string(data)+fmt.Sprint(err))
		checkHidden(t, failureMessage(value))
	}
}

func checkHidden(t *testing.T, printed string) {
	t.Helper()
	assert.NotContains(t, printed, rawText)
	assert.NotContains(t, printed, rawText[:8])
	assert.NotContains(t, printed, fmt.Sprintf("%x", rawText[:8]))
	assert.NotContains(t, printed, fmt.Sprintf("%X", rawText[:8]))
	assert.NotContains(t, printed, strings.Trim(fmt.Sprint([]byte(rawText[:8])), "[]")) //nolint:staticcheck // the bytes as numbers
}

func logged(value any) string {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "value", value)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "value", value)
	return out.String()
}

// failureMessage is what an assertion shows: it follows pointers and ignores
// the methods of what it prints.
func failureMessage(value any) string {
	var r recorder
	assert.Equal(&r, value, reflect.Zero(reflect.TypeOf(value)).Interface())
	return r.String()
}

type recorder struct{ strings.Builder }

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s, v := verify.RawSecret(rawText), newVerifier(t, config())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.Equal(t, "verify.Secret(hidden)", fmt.Sprintf(verb, s))
		assert.Equal(t, "verify.Secret(hidden)", fmt.Sprintf(verb, &s))
		assert.Equal(t, "verify.Verifier(hidden)", fmt.Sprintf(verb, v))
	}
	data, err := json.Marshal(map[string]any{"s": s, "v": v})
	require.NoError(t, err)
	assert.JSONEq(t, `{"s":"verify.Secret(hidden)","v":"verify.Verifier(hidden)"}`, string(data))
	data, err = xml.Marshal(s)
	require.NoError(t, err)
	assert.Equal(t, "<Secret>verify.Secret(hidden)</Secret>", string(data))
	assert.Contains(t, logged(s), "verify.Secret(hidden)")
	assert.Contains(t, logged((*verify.Verifier)(nil)), "nil")
}
