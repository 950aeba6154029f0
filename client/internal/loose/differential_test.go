package loose_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// FuzzParse: whatever the text, it reads as encoding/json reads it.
func FuzzParse(f *testing.F) {
	for _, tc := range readings {
		f.Add([]byte(tc.text))
	}
	for _, tc := range addressReadings {
		f.Add([]byte(`{"x":` + tc.text + `}`))
	}
	for _, text := range notObjects {
		f.Add([]byte(text))
	}
	f.Fuzz(compareText)
}

func compareText(t *testing.T, text []byte) {
	t.Helper()
	before := bytes.Clone(text)
	want, wantErr := parseReference(text)
	got, err := loose.Parse(text)
	require.Equal(t, wantErr == nil, err == nil)
	if err == nil {
		compareObjects(t, want, got, 10)
	}
	require.Equal(t, before, text, "it wrote into the text")
}

// compareObjects goes levels deep, for the reference copies each level.
func compareObjects(t *testing.T, want reference, got loose.Object, levels int) {
	t.Helper()
	require.Equal(t, want == nil, got == nil)
	if want == nil || levels == 0 {
		return
	}
	names := map[string]bool{"id": true, "ID": true, "x": true, "": true, "\ufffd": true, "no field": true}
	for name := range want {
		names[name] = true
	}
	for name := range names {
		compareFields(t, want, got, name, levels)
	}
}

func compareFields(t *testing.T, want reference, got loose.Object, name string, levels int) {
	t.Helper()
	raw, has := want[name]
	require.Equal(t, has, got.Get(name) != nil, name)
	compareValues(t, raw, got.Get(name), levels)
	require.Equal(t, textIn(raw), got.Text(name))
	require.Equal(t, textIn(raw), got.Untrusted(name).Text())
	require.Equal(t, scalarIn(raw), got.Scalar(name))
	require.Equal(t, want.id(name), got.ID(name))
	require.Equal(t, want.number(name), got.Number(name))
	require.Equal(t, want.time(name, "x"), got.Time(name, "x"))
	wantFlag, wantIs := want.flag(name)
	flag, is := got.Flag(name)
	require.Equal(t, []bool{wantFlag, wantIs}, []bool{flag, is})
	require.Equal(t, want.addresses(name, textIn), texts(got.Addresses(name, loose.Value.Text)))
	require.Equal(t, want.addresses(name, scalarIn), texts(got.Addresses(name, loose.Value.Scalar)))

	wantRows, wantOK := want.list(name)
	rows, ok := got.List(name)
	require.Equal(t, wantOK, ok)
	compareRows(t, wantRows, rows, levels)
	compareRows(t, want.several(name), got.Several(name), 0)
}

func compareRows(t *testing.T, want []json.RawMessage, got []loose.Value, levels int) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		compareValues(t, want[i], got[i], levels)
	}
}

func compareValues(t *testing.T, want json.RawMessage, got loose.Value, levels int) {
	t.Helper()
	require.Equal(t, string(want), string(got))
	require.Equal(t, textIn(want), got.Text())
	require.Equal(t, scalarIn(want), got.Scalar())
	compareObjects(t, objectIn(want), got.Object(), max(levels-1, 0))
}

func texts(list []client.Untrusted) []string {
	var texts []string
	for _, u := range list {
		texts = append(texts, u.Text())
	}
	return texts
}
