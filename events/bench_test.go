package events_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// BenchmarkHandler is the door's own cost for a delivery: the store is in memory.
func BenchmarkHandler(b *testing.B) {
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	require.NoError(b, err)
	h, err := events.NewHandler(v, jsonProfile, newMemory(), events.HandlerConfig{})
	require.NoError(b, err)
	header, err := verify.Sign(secret, "evt_1", time.Now(), []byte(received))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(received))
		req.Header = header
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != http.StatusNoContent {
			b.Fatal(rec.Code)
		}
	}
}

// BenchmarkSweep reads 10,000 events in pages of 100.
func BenchmarkSweep(b *testing.B) {
	p := newProvider()
	p.limit = 100
	for s := range events.Cursor(10_000) {
		p.rows = append(p.rows, row{eventID(s + 1), s + 1, time.Now()})
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := events.NewSweeper(p, newMemory(), events.SweeperConfig{Start: events.FromBeginning})
		require.NoError(b, err)
		report, err := s.Sweep(b.Context())
		require.NoError(b, err)
		require.Equal(b, 10_000, report.Fresh)
	}
}
