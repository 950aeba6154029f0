package sqldb

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRowsReadAsEncodingJSONWroteThem(t *testing.T) {
	t.Parallel()
	type kind string
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	texts := []string{"", "plain", `"`, `\`, "\x1f\x7f", "ü漢\u2028", "bad \xff utf-8", "</script>&", "\n\t"}
	var rows Rows
	var want []map[string]any
	for _, text := range texts {
		row := map[string]any{
			"text": text, "kind": kind(text), "int": int64(-1 << 62), "small": 7, "yes": true, "no": false, "null": nil,
			"at": at, "never": time.Time{}, "wait": 90 * time.Second, text: "as a name",
		}
		rows = append(rows, row)
		plain := map[string]any{}
		for k, v := range row {
			plain[k] = v
		}
		plain["at"], plain["never"], plain["wait"] = at.UnixMicro(), nil, (90 * time.Second).Microseconds()
		want = append(want, plain)
	}
	expected, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, string(expected), rows.json())
	require.Equal(t, "[]", Rows(nil).json())
	require.Equal(t, `[{"a":"\ufffd\ufffd"}]`, strings.ReplaceAll(Rows{{"a": kind("\x00\xff")}}.json(), "\uFFFD", `\ufffd`), "Postgres has no NUL in a text")
}

func BenchmarkRows(b *testing.B) {
	row := map[string]any{
		"event_id": "evt_01HZX3Q5W8D1M6K7N9P2R4T6V8", "kind": "received", "inbox": "ibx_main", "thread": "thd_1", "message": "msg_1",
		"version": int64(0), "workflow": "w1", "run": "r1", "step": int64(3), "terminal": false,
	}
	rows := Rows{row, row, row, row}
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			_ = rows.json()
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			_, _ = json.Marshal(rows)
		}
	})
}
