package verify_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// request is what the two verifiers are compared on.
type request struct {
	id, timestamp, signature string
	svix, second             bool // under svix-*; signature on a second line
	body                     string
}

func (r request) header() http.Header {
	prefix := "Webhook-"
	if r.svix {
		prefix = "Svix-"
	}
	h := http.Header{prefix + "Id": {r.id}, prefix + "Timestamp": {r.timestamp}, prefix + "Signature": {r.signature}}
	if r.second {
		h[prefix+"Signature"] = []string{"v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=", r.signature}
	}
	return h
}

// difference is an input for which we deliberately answer otherwise than the
// reference library: why, and an instance. What we alone refuse is recognised
// by applies; what we alone accept, the reference must accept too once it is
// written in the one form that it reads (normalised).
type difference struct {
	name    string
	why     string
	sample  request
	applies func(request) bool
	ours    bool // we accept, the reference does not
}

// good is the signature over the plain decimal spelling of seconds.
var good = macText(messageID, "1614265330", payload)

func macText(id, timestamp, body string) string {
	// The reference signs any ID, which our Sign does not.
	wh, _ := standardwebhooks.NewWebhookRaw([]byte(rawText))
	n, _ := strconv.ParseInt(timestamp, 10, 64)
	s, _ := wh.Sign(id, time.Unix(n, 0), []byte(body))
	return s
}

func sample(id, timestamp, signature string) request {
	return request{id: id, timestamp: timestamp, signature: signature, body: payload}
}

var differences = []difference{
	{
		name:    "timestamp in another spelling",
		why:     "the reference parses the number and prints it again into the signed text, so one signature passes under many header texts",
		sample:  sample(messageID, "+01614265330", good),
		applies: func(r request) bool { return !plainSeconds(r.timestamp) },
	},
	{
		name:    "timestamp of more than twelve digits, or none after 1970",
		why:     "no such time is near any clock; the usual cause is milliseconds",
		sample:  sample(messageID, "1614265330000", macText(messageID, "1614265330000", payload)),
		applies: func(r request) bool { return !plainSeconds(r.timestamp) },
	},
	{
		name:    "id with a full stop",
		why:     "it separates the parts of the signed text; the specification forbids it",
		sample:  sample("msg.1", "1614265330", macText("msg.1", "1614265330", payload)),
		applies: func(r request) bool { return strings.Contains(r.id, ".") },
	},
	{
		name:   "id that is long or not visible ASCII",
		why:    "IDs become database keys and log fields",
		sample: sample("msg 1", "1614265330", macText("msg 1", "1614265330", payload)),
		applies: func(r request) bool {
			return len(r.id) > 256 || strings.ContainsFunc(r.id, func(c rune) bool { return c <= ' ' || c > '~' })
		},
	},
	{
		name:    "item without a version or without a value",
		why:     "a list that cannot be read in pairs is not one; the reference skips such items, and ignores what follows a second comma",
		sample:  sample(messageID, "1614265330", "junk "+good),
		applies: func(r request) bool { return !inPairs(r.signature) },
	},
	{
		name:   "long signature header",
		why:    "more than 32 v1 signatures or 4 KiB is work for a forger",
		sample: sample(messageID, "1614265330", strings.Repeat("v1,"+strings.Repeat("A", 43)+"= ", 32)+good),
		applies: func(r request) bool {
			lines := strings.Join(r.header().Values("Webhook-Signature"), ",")
			return len(lines) >= 4096 || strings.Count(lines, "v1") > 32
		},
	},
	{
		name:   "tabs and commas between signatures",
		why:    "proxies merge header lines with commas; the reference splits on single spaces and looks at the first two parts only",
		sample: sample(messageID, "1614265330", "v2,x,"+good), ours: true,
	},
	{
		name:   "space in place of the comma of a pair",
		why:    "gateways cut a line at its comma and join the parts in their own way",
		sample: sample(messageID, "1614265330", strings.Replace(good, ",", " ", 1)), ours: true,
	},
	{
		name:   "signature on a second line",
		why:    "a list header may be sent in several lines; the reference reads the first",
		sample: request{id: messageID, timestamp: "1614265330", signature: good, second: true, body: payload}, ours: true,
	},
	{
		name:   "svix-* headers",
		why:    "Svix and Goshen Email send the same scheme under this prefix",
		sample: request{id: messageID, timestamp: "1614265330", signature: good, svix: true, body: payload}, ours: true,
	},
}

// plainSeconds is the grammar in other words than the package's.
func plainSeconds(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > 0 && n < 1e12 && strconv.FormatInt(n, 10) == s
}

var version = regexp.MustCompile(`^[vV][0-9]+[a-z]*$`)

func inPairs(s string) bool {
	tokens := tokensOf(s)
	for i, token := range tokens {
		if isVersion := len(token) <= 8 && version.MatchString(token); isVersion != (i%2 == 0) {
			return false
		}
	}
	return len(tokens)%2 == 0 && len(tokens) > 0
}

// both asks the two verifiers. Ours is given a clock that agrees with the
// timestamp, as the reference is asked without its own.
func both(t testing.TB, r request) (ours, reference bool) {
	t.Helper()
	now, _ := strconv.ParseInt(r.timestamp, 10, 64)
	c := config()
	c.Now = at(now)
	_, err := newVerifier(t, c).Verify(r.header(), []byte(r.body))
	wh, refErr := standardwebhooks.NewWebhookRaw([]byte(rawText))
	require.NoError(t, refErr)
	return err == nil, wh.VerifyIgnoringTimestamp([]byte(r.body), r.header()) == nil
}

func TestDeliberateDifferences(t *testing.T) {
	t.Parallel()
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			ours, reference := both(t, d.sample)
			assert.Equal(t, d.ours, ours, d.why)
			assert.Equal(t, !d.ours, reference, d.why)
			if d.ours {
				_, reference = both(t, normalised(d.sample))
				assert.True(t, reference)
				return
			}
			assert.True(t, d.applies(d.sample))
		})
	}
}

// Secrets that the tagged reference takes and we refuse.
func TestDeliberateDifferencesOfSecrets(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                                  "an empty key lets anyone sign",
		"whsec_":                            "an empty key lets anyone sign",
		"whsec_AA==":                        "a key of one byte can be guessed",
		rawText:                             "hexadecimal digits are a raw key; decoded they verify nothing",
		base64Text + "\n":                   "white space is a mistake where the secret is read",
		"whsec_" + strings.Repeat("A", 120): "longer than any issuer's keys",
	} {
		_, err := standardwebhooks.NewWebhook(text)
		require.NoError(t, err, why)
		_, err = verify.New(verify.Config{Secrets: []verify.Secret{verify.Base64Secret(text)}})
		require.ErrorIs(t, err, verify.ErrSecret, why)
	}
}

// FuzzDifferential compares us with the reference library. The input says how
// to build a request around a genuine signature, so that acceptance is common.
func FuzzDifferential(f *testing.F) {
	f.Add(messageID, "1614265330", "", "", payload, false, false)
	for _, d := range differences {
		before, after, _ := strings.Cut(d.sample.signature, good)
		f.Add(d.sample.id, d.sample.timestamp, before, after, d.sample.body, d.sample.svix, d.sample.second)
	}
	f.Fuzz(func(t *testing.T, id, timestamp, before, after, body string, svix, second bool) {
		signature := before + macText(id, timestamp, body) + after
		r := request{id, timestamp, signature, svix, second, body}
		ours, reference := both(t, r)
		if reference && !ours && !explained(r) {
			t.Fatalf("only the reference accepts %s", describe(r))
		}
		if ours {
			_, reference = both(t, normalised(r))
			require.True(t, reference, "only we accept %s", describe(r))
		}
	})
}

func explained(r request) bool {
	for _, d := range differences {
		if !d.ours && d.applies(r) {
			return true
		}
	}
	return false
}

// normalised writes the signatures of a request as pairs with commas, with
// single spaces between them, in one line under the name webhook-signature.
func normalised(r request) request {
	tokens := tokensOf(r.signature)
	var pairs []string
	for i := 0; i+1 < len(tokens); i += 2 {
		pairs = append(pairs, tokens[i]+","+tokens[i+1])
	}
	r.signature, r.svix, r.second = strings.Join(pairs, " "), false, false
	return r
}

func tokensOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
}

func describe(r request) string {
	return fmt.Sprintf("%#v (signature in base64: %s)", r, base64.StdEncoding.EncodeToString([]byte(r.signature)))
}
