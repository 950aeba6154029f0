package verify_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

func TestVerifyReportsTheDelivery(t *testing.T) {
	t.Parallel()
	c := config()
	c.Secrets = []verify.Secret{verify.Base64Secret(base64Text), verify.RawSecret(rawText), verify.RawSecret(otherText).Version("old")}
	v := newVerifier(t, c)
	for want, secret := range map[string]verify.Secret{
		"1": c.Secrets[0], "2": c.Secrets[1], "old": c.Secrets[2],
	} {
		d, err := v.Verify(signedWith(t, secret, []byte(payload)), []byte(payload))
		require.NoError(t, err)
		assert.Equal(t, verify.Delivery{ID: messageID, Timestamp: time.Unix(seconds, 0).UTC(), SecretVersion: want}, d)
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := verify.New(verify.Config{
		Secrets:   []verify.Secret{verify.RawSecret("short"), verify.RawSecret(rawText), verify.Base64Secret(rawText)},
		Tolerance: -1, MaxBody: -1, ReadTimeout: -1, FailStatus: http.StatusGone,
	})
	require.ErrorIs(t, err, verify.ErrConfig)
	require.ErrorIs(t, err, verify.ErrSecret)
	for _, part := range []string{"secret 1: shorter", "secret 3: hexadecimal", "Tolerance", "MaxBody", "ReadTimeout", "FailStatus 410"} {
		assert.ErrorContains(t, err, part)
	}
	assert.NotContains(t, err.Error(), "secret 2")
}

func TestFailStatus(t *testing.T) {
	t.Parallel()
	allowed := map[int]bool{0: true, 400: true, 401: true, 403: true, 500: true, 503: true}
	for status := -1; status < 1000; status++ {
		c := config()
		c.FailStatus = status
		v, err := verify.New(c)
		if !allowed[status] {
			require.ErrorIs(t, err, verify.ErrConfig, "%d", status)
			continue
		}
		require.NoError(t, err)
		want := max(status, map[bool]int{true: 400}[status == 0])
		assert.Equal(t, want, v.Status(verify.ErrNoMatch))
	}
}

func TestToleranceIsWholeSeconds(t *testing.T) {
	t.Parallel()
	for tolerance, ok := range map[time.Duration]bool{
		-time.Second: false, time.Millisecond: false, 1500 * time.Millisecond: false,
		time.Second: true, 90 * time.Minute: true, 1<<63 - 1: false, (1<<63 - 1) / time.Second * time.Second: true,
	} {
		c := config()
		c.Tolerance = tolerance
		_, err := verify.New(c)
		assert.Equal(t, ok, err == nil, "%v: %v", tolerance, err)
	}
}

// The edges count by whole seconds: what is below a second in the clock is no
// part of the comparison.
func TestToleranceEdges(t *testing.T) {
	t.Parallel()
	for offset, ok := range map[time.Duration]bool{
		10 * time.Second: true, 10*time.Second + 999*time.Millisecond: true, 11 * time.Second: false,
		-10 * time.Second: true, -10*time.Second - time.Nanosecond: false, -11 * time.Second: false,
	} {
		c := config()
		c.Tolerance, c.Now = 10*time.Second, func() time.Time { return time.Unix(seconds, 0).Add(offset) }
		_, err := newVerifier(t, c).Verify(signed(t, nil), nil)
		assert.Equal(t, ok, err == nil, "%v: %v", offset, err)
	}
}

func TestTimestampErrorTellsTheSkew(t *testing.T) {
	t.Parallel()
	for _, skew := range []int64{301, -301, 86400, -31536000, 1 << 40, -1 << 36} {
		c := config()
		c.Now = at(seconds + skew)
		_, err := newVerifier(t, c).Verify(signed(t, nil), nil)
		te, ok := errors.AsType[*verify.TimestampError](fmt.Errorf("wrapped: %w", err))
		require.True(t, ok)
		assert.Equal(t, verify.TimestampError{Skew: skew, Tolerance: 300}, *te)
		require.ErrorIs(t, err, verify.ErrTimestamp)
		require.ErrorContains(t, err, fmt.Sprintf("%d s", max(skew, -skew)))
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	reason := func(change func(http.Header)) string {
		h := signed(t, []byte(payload))
		change(h)
		_, err := v.Verify(h, []byte(payload))
		require.ErrorIs(t, err, verify.ErrUnverified)
		return err.Error()
	}
	assert.Contains(t, reason(func(h http.Header) { h.Set("Webhook-Timestamp", "1614265330000") }), "milliseconds?")
	assert.Contains(t, reason(func(h http.Header) { h.Del("Webhook-Timestamp") }), "looked for webhook-timestamp")
	assert.Contains(t, reason(func(h http.Header) { clear(h) }), "looked for webhook-id, webhook-timestamp and webhook-signature, or the same with svix-")
	assert.Contains(t, reason(func(h http.Header) {
		h["Svix-Id"], h["Svix-Timestamp"] = h["Webhook-Id"], h["Webhook-Timestamp"]
		h.Del("Webhook-Id")
		h.Del("Webhook-Signature")
	}), "looked for svix-signature")
	_, err := v.Verify(signed(t, []byte(payload)), nil)
	require.ErrorContains(t, err, "body is empty")
}

// A Verifier that New did not build refuses everything, without a panic.
func TestZeroVerifierRefuses(t *testing.T) {
	t.Parallel()
	empty := http.Header{
		"Webhook-Id": {messageID}, "Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,woH/1mJtZGSMCmpFTxRYbStS24eLLD/oXIYr4PYyZ7g="},
	}
	for name, v := range map[string]*verify.Verifier{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := v.Verify(empty, []byte(payload))
			require.ErrorIs(t, err, verify.ErrNoSecret)
			require.ErrorIs(t, err, verify.ErrUnverified)
			require.ErrorIs(t, v.SetSecrets(verify.RawSecret(rawText)), verify.ErrNoSecret)
			assert.Equal(t, 500, v.Status(err))
			_, _, err = v.Read(nil, nil)
			require.ErrorIs(t, err, verify.ErrNoSecret)
			_ = fmt.Sprintf("%v %+v", v, v)
		})
	}
}

func TestExpiredSecretsRefuse(t *testing.T) {
	t.Parallel()
	c := config()
	now := time.Unix(seconds, 0)
	c.Now = func() time.Time { return now }
	c.Secrets = []verify.Secret{verify.RawSecret(rawText).Until(now.Add(time.Second))}
	v := newVerifier(t, c)
	now = now.Add(2 * time.Second)
	_, err := v.Verify(signed(t, nil), nil)
	require.ErrorIs(t, err, verify.ErrNoSecret)
	assert.Equal(t, 400, v.Status(err))
}

// What the caller does to its slice later changes nothing.
func TestSecretsAreCopied(t *testing.T) {
	t.Parallel()
	c := config()
	v := newVerifier(t, c)
	c.Secrets[0] = verify.RawSecret(otherText)
	_, err := v.Verify(signed(t, nil), nil)
	require.NoError(t, err)
}

func TestSetSecrets(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	old, current := verify.RawSecret(rawText), verify.RawSecret(otherText)
	accepted := func(s verify.Secret) bool {
		_, err := v.Verify(signedWith(t, s, nil), nil)
		return err == nil
	}
	require.NoError(t, v.SetSecrets(current, old.Until(time.Unix(seconds, 0))))
	assert.True(t, accepted(old) && accepted(current))
	require.NoError(t, v.SetSecrets(current))
	assert.True(t, !accepted(old) && accepted(current))
	err := v.SetSecrets(old, verify.RawSecret(""))
	require.ErrorIs(t, err, verify.ErrSecret)
	assert.True(t, !accepted(old) && accepted(current), "a refused set changes nothing")
	require.Error(t, v.SetSecrets())
}

// Run with -race: deliveries go on being verified while secrets change, and
// one that both sets can verify never fails.
func TestSetSecretsWhileServing(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, config())
	common, other := verify.RawSecret(rawText), verify.RawSecret(otherText)
	h := signedWith(t, common, []byte(payload))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				_, err := v.Verify(h, []byte(payload))
				assert.NoError(t, err)
			}
		})
	}
	for i := range 200 {
		set := []verify.Secret{common}
		if i%2 == 0 {
			set = []verify.Secret{other, common}
		}
		assert.NoError(t, v.SetSecrets(set...))
	}
	wg.Wait()
}

// TestVerifyDoesNotAllocate is not parallel: the count is of the whole process.
//
//nolint:paralleltest
func TestVerifyDoesNotAllocate(t *testing.T) {
	if raceEnabled() {
		t.Skip("the race detector makes sync.Pool drop what it holds")
	}
	c := config()
	c.Secrets = append(c.Secrets, verify.RawSecret(otherText))
	v := newVerifier(t, c)
	body := []byte(strings.Repeat("x", 64<<10))
	one := signed(t, body)
	second := signedWith(t, c.Secrets[1], body)
	many := one.Clone()
	many.Set("Webhook-Signature", strings.Repeat("v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= ", 31)+one.Get("Webhook-Signature"))
	svix := http.Header{"svix-id": one["Webhook-Id"], "svix-timestamp": one["Webhook-Timestamp"], "svix-signature": one["Webhook-Signature"]}
	for name, h := range map[string]http.Header{"one": one, "second secret": second, "32 signatures": many, "svix in lower case": svix} {
		allocs := testing.AllocsPerRun(200, func() {
			if _, err := v.Verify(h, body); err != nil {
				t.Fatal(err)
			}
		})
		assert.Zero(t, allocs, name)
	}
}

// A forger's megabyte of header costs no more than a few small allocations.
//
//nolint:paralleltest
func TestHostileHeadersCostLittle(t *testing.T) {
	v := newVerifier(t, config())
	megabyte := strings.Repeat("9", 1<<20)
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		h := signed(t, nil)
		h.Set(name, megabyte)
		allocs := testing.AllocsPerRun(50, func() {
			_, err := v.Verify(h, nil)
			if err == nil || len(err.Error()) > 200 {
				t.Fatal("accepted, or a long error")
			}
		})
		assert.LessOrEqual(t, allocs, 10.0, name)
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	h := signed(t, []byte(payload))
	assert.Equal(t, http.Header{
		"Webhook-Id":        {messageID},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,hK4CWvngkaAwjY1pABLuUbOIkEJjW9tAapq1no4ojG0="},
	}, h)
	sign := func(s verify.Secret, id string, sec int64) error {
		_, err := verify.Sign(s, id, time.Unix(sec, 0), nil)
		return err
	}
	raw := verify.RawSecret(rawText)
	require.ErrorIs(t, sign(raw, "a.b", seconds), verify.ErrMalformedID)
	require.ErrorIs(t, sign(raw, "", seconds), verify.ErrMalformedID)
	require.ErrorIs(t, sign(raw, "a", 0), verify.ErrMalformedTimestamp)
	require.ErrorIs(t, sign(raw, "a", -5), verify.ErrMalformedTimestamp)
	require.ErrorIs(t, sign(raw, "a", 1e12), verify.ErrMalformedTimestamp)
	require.ErrorIs(t, sign(verify.Secret{}, "a", seconds), verify.ErrSecret)
	require.NoError(t, sign(raw.Until(time.Unix(1, 0)), "a", 1e12-1))
}

func TestImportsStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	assert.Equal(t, []string{"github.com/replywake/replywake/verify"}, strings.Fields(string(out)))
}

// Who could read the expected MAC out of an error or a log could send it.
func TestErrorsDoNotHoldTheExpectedMAC(t *testing.T) {
	t.Parallel()
	expected, err := base64.StdEncoding.DecodeString("hK4CWvngkaAwjY1pABLuUbOIkEJjW9tAapq1no4ojG0=")
	require.NoError(t, err)
	h := signed(t, []byte("another body"))
	_, err = newVerifier(t, config()).Verify(h, []byte(payload))
	require.ErrorIs(t, err, verify.ErrNoMatch)
	for ; err != nil; err = errors.Unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err)} {
			assert.NotContains(t, text, base64.StdEncoding.EncodeToString(expected))
			assert.NotContains(t, strings.ToLower(text), hex.EncodeToString(expected))
		}
	}
}
