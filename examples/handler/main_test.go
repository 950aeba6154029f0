package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemonstration(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, demonstrate(t.Context(), &out))
	text := out.String()
	for _, line := range []string{
		"genuine   204", "again     204", "forged    400", "stale     400", "tampered  400", "5 deliveries, 1 ticket",
		"log: verify: no signature matches", "log: verify: timestamp outside the tolerance",
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "Where is it?")
}

// The service is what it was, but for the verifier: no other package of ours
// is linked, and the routes have one line of it.
func TestServiceImportsTheVerifierAlone(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "service.go", nil, parser.ImportsOnly)
	require.NoError(t, err)
	var ours []string
	for _, spec := range file.Imports {
		if strings.Contains(spec.Path.Value, "replywake") {
			ours = append(ours, strings.Trim(spec.Path.Value, `"`))
		}
	}
	require.Equal(t, []string{"github.com/replywake/replywake/verify"}, ours)
}

func TestBadSecretIsAnError(t *testing.T) {
	t.Parallel()
	_, err := newService("short", nil)
	require.Error(t, err)
}
