package verify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/verify"
)

// BenchmarkVerify sets a whole verification, with the clock read and headers as
// a sender gives them, beside the bare MAC over the same bytes with a reused
// hash state, and beside the reference library. Read the ratios, in one run:
//
//	go test -run '^$' -bench Verify -count 10 ./verify
func BenchmarkVerify(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"200B", 200}, {"4KiB", 4 << 10}, {"64KiB", 64 << 10}} {
		body := bytes.Repeat([]byte("x"), size.bytes)
		b.Run(size.name+"/bare", func(b *testing.B) { benchmarkBare(b, body) })
		b.Run(size.name+"/replywake", func(b *testing.B) { benchmarkReplywake(b, body) })
		b.Run(size.name+"/reference", func(b *testing.B) { benchmarkReference(b, body) })
	}
}

const benchID = "evt_01HZX3Q5W8D1M6K7N9P2R4T6V8"

func benchmarkBare(b *testing.B, body []byte) {
	signed := append([]byte(benchID+".1614265330."), body...)
	mac := hmac.New(sha256.New, []byte(rawText))
	var sum [sha256.Size]byte
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		mac.Reset()
		mac.Write(signed)
		mac.Sum(sum[:0])
	}
}

func benchmarkReplywake(b *testing.B, body []byte) {
	secret := verify.RawSecret(rawText)
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}, Tolerance: 24 * time.Hour})
	require.NoError(b, err)
	h := benchmarkHeaders(b, body)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := v.Verify(h, body); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkReference(b *testing.B, body []byte) {
	v, err := standardwebhooks.NewWebhookRaw([]byte(rawText))
	require.NoError(b, err)
	h := benchmarkHeaders(b, body)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := v.Verify(body, h); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkHeaders(b *testing.B, body []byte) http.Header {
	h, err := verify.Sign(verify.RawSecret(rawText), benchID, time.Now(), body)
	require.NoError(b, err)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", "200")
	h.Set("User-Agent", "webhooks/1.0")
	h.Set("Accept-Encoding", "gzip")
	return h
}
