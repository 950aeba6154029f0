package verify_test

import (
	"bytes"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// FuzzHeaders looks for header texts that pass although they are not what the
// sender wrote, or that make an error long.
func FuzzHeaders(f *testing.F) {
	f.Add(messageID, "1614265330", "v1,hK4CWvngkaAwjY1pABLuUbOIkEJjW9tAapq1no4ojG0=", "", true)
	for _, v := range readVectors(f, "testdata/cases.json") {
		var text [3]string
		for i := range min(3, len(v.Headers)) {
			text[i] = v.Headers[i].text
		}
		f.Add(text[0], text[1], text[2], "", v.Outcome == "verified")
	}
	f.Fuzz(func(t *testing.T, id, timestamp, signature, more string, svix bool) {
		prefix := map[bool]string{true: "svix-", false: "webhook-"}[svix]
		h := map[string][]string{prefix + "id": {id}, prefix + "timestamp": {timestamp}, prefix + "signature": {signature, more}}
		d, err := newVerifier(t, config()).Verify(h, []byte(payload))
		if err != nil {
			require.ErrorIs(t, err, verify.ErrUnverified)
			require.Less(t, len(err.Error()), 200)
			require.Zero(t, d)
			return
		}
		genuine, err := verify.Sign(verify.RawSecret(rawText), d.ID, d.Timestamp, []byte(payload))
		require.NoError(t, err)
		require.Equal(t, genuine.Get("Webhook-Id"), id)
		require.Equal(t, genuine.Get("Webhook-Timestamp"), timestamp)
		require.Contains(t, signature+","+more, strings.TrimPrefix(genuine.Get("Webhook-Signature"), "v1,"))
	})
}

// FuzzBody signs any bytes and wants them back through Read; any other bytes
// under the same signature are refused.
func FuzzBody(f *testing.F) {
	f.Add([]byte(payload), []byte(`{"test":2432232314}`), true)
	f.Add([]byte{}, []byte{0}, false)
	f.Add([]byte("\xff\xfe\x00"), []byte("\xef\xbf\xbd"), true)
	f.Fuzz(func(t *testing.T, body, other []byte, whole bool) {
		v := newVerifier(t, config())
		reader := iotest.OneByteReader(bytes.NewReader(body))
		if whole {
			reader = bytes.NewReader(body)
		}
		h := signed(t, body)
		_, got, err := v.Read(httptest.NewRecorder(), chunked(h, reader))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got))
		_, err = v.Verify(h, other)
		require.Equal(t, bytes.Equal(body, other), err == nil)
	})
}

// FuzzSecret wants each text to be refused without being shown, or to be a key
// that decodes in exactly one way and verifies what it signs.
func FuzzSecret(f *testing.F) {
	for _, text := range []string{"", rawText, base64Text, base64Text + "\n", "whsec_", "v1," + base64Text, "\"" + rawText + "\"", "whsec_AA=="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []verify.Secret{verify.RawSecret(text), verify.Base64Secret(text)} {
			h, err := verify.Sign(s, messageID, time.Unix(seconds, 0), []byte(payload))
			v, newErr := verify.New(verify.Config{Secrets: []verify.Secret{s}, Now: at(seconds)})
			require.Equal(t, err == nil, newErr == nil)
			if err != nil {
				require.ErrorIs(t, err, verify.ErrSecret)
				if len(text) >= 16 {
					require.NotContains(t, err.Error(), text)
				}
				continue
			}
			_, err = v.Verify(h, []byte(payload))
			require.NoError(t, err)
		}
		checkOneDecoding(t, text)
	})
}

// checkOneDecoding writes an accepted base64 secret again and wants its text.
func checkOneDecoding(t *testing.T, text string) {
	if _, err := verify.Sign(verify.Base64Secret(text), messageID, time.Unix(seconds, 0), nil); err != nil {
		return
	}
	encoded := strings.TrimPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	assert.Equal(t, encoded, base64.StdEncoding.EncodeToString(key))
	assert.True(t, len(key) >= 24 && len(key) <= 75)
}
