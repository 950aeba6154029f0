package efa

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/verify"
)

// row is an event as a page shows it, spelled like the documented one.
func row(n int) string {
	return fmt.Sprintf(`{
      "id": "evt_01k5v0a7z3n9c8b2q4t6w8y1r%03d",
      "type": "message.received",
      "sequence": %d,
      "occurred_at": "2026-09-23T14:40:11.903Z",
      "data": {
        "message_id": "msg_01k5v0a7z3n9c8b2q4t6w8y1r%03d",
        "thread_id": "thd_01k5v0a7z3n9c8b2q4t6w8y1r%03d",
        "inbox_id": "ibx_01k5v0a7z3n9c8b2q4t6w8y1r",
        "environment": "live",
        "simulated": false
      },
      "environment": "live",
      "api_version": "2026-09-19"
    }`, n, n, n, n)
}

// BenchmarkDecodePage reads a full page: 100 events.
func BenchmarkDecodePage(b *testing.B) {
	rows := make([]string, pageLimit)
	for i := range rows {
		rows[i] = row(i + 1)
	}
	answer := client.Answer{Op: opEvents, Status: http.StatusOK, Body: []byte(
		`{"data": [` + strings.Join(rows, ", ") + `], "next_cursor": "100", "has_more": true}`)}
	b.ReportAllocs()
	b.SetBytes(int64(len(answer.Body)))
	for b.Loop() {
		page, err := decodePage(answer)
		if err != nil || len(page.Events) != pageLimit {
			b.Fatal(len(page.Events), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pageLimit, "ns/event")
}

// BenchmarkProfile reads one push.
func BenchmarkProfile(b *testing.B) {
	body := []byte(row(1))
	delivery := verify.Delivery{ID: "evt_01k5v0a7z3n9c8b2q4t6w8y1r001"}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if ev, err := Profile(delivery, body); err != nil || ev.Thread == "" {
			b.Fatal(ev.Thread, err)
		}
	}
}
