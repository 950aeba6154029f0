// Package imports holds the test of who may import whom.
package imports_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/replywake/replywake"

// law is what one package may import of ours, directly, and of which modules
// of others it may be linked with, through whatever it imports. What is not
// named is forbidden. Trees are named by their top; see [law.allows].
type law struct {
	ours    []string
	modules []string
}

var (
	backoff = []string{"github.com/cenkalti/backoff/v5"}

	// What a program that embeds the library is linked with.
	linked = slices.Concat(backoff, pgx, goose, openTelemetry)

	pgx = []string{
		"github.com/jackc/pgx/v5",
		"github.com/jackc/pgpassfile",
		"github.com/jackc/pgservicefile",
		"github.com/jackc/puddle/v2",
		"golang.org/x/sync",
		"golang.org/x/text",
	}
	goose = []string{
		"github.com/pressly/goose/v3",
		"github.com/mfridman/interpolate",
		"github.com/sethvargo/go-retry",
		"go.uber.org/multierr",
	}
	// The API alone: SDK and exporters are modules of their own.
	openTelemetry = []string{
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/auto/sdk",
		"github.com/cespare/xxhash/v2",
		"github.com/go-logr/logr",
		"github.com/go-logr/stdr",
	}
	standardWebhooks = []string{"github.com/standard-webhooks/standard-webhooks/libraries"}
)

// lawOf returns the law for one of our packages, named relative to the module.
// For want of one nothing is allowed.
func lawOf(pkg string) law {
	top, rest, nested := strings.Cut(pkg, "/")
	switch {
	case pkg == "verify":
		return law{}
	case pkg == "client":
		return law{modules: backoff}
	case pkg == "events":
		return law{ours: []string{"verify", "client"}, modules: linked}
	case pkg == "events/doctor":
		return law{ours: []string{"events", "client", "verify"}, modules: slices.Concat(backoff, openTelemetry)}
	case pkg == "dedupe":
		// client: the types an event's fields have.
		return law{ours: []string{"events", "client", "events/doctor", "internal"}, modules: linked}
	case pkg == "resume":
		return law{ours: []string{"events", "client", "internal"}, modules: linked}
	case top == "resume":
		return law{ours: []string{"resume", "events", "client", "internal"}, modules: linked}
	case strings.HasPrefix(pkg, "client/internal/"):
		return law{ours: []string{"client", "client/internal"}, modules: backoff}
	case top == "client" && nested:
		provider, _, _ := strings.Cut(rest, "/")
		return law{ours: []string{"client", "client/internal", "events", "verify", "events/doctor", "client/" + provider}, modules: linked}
	case top == "internal":
		return law{ours: []string{"internal", "events", "client", "verify"}, modules: linked}
	}
	return law{}
}

// allows compares exactly, except that our trees internal, client/internal and
// client/PROVIDER are open as a whole. What only tests and programs are for is
// never allowed.
func (l law) allows(pkg string) bool {
	if !isLibrary(pkg) {
		return false
	}
	return slices.ContainsFunc(l.ours, func(allowed string) bool {
		tree := allowed == "internal" || strings.HasPrefix(allowed, "client/")
		return pkg == allowed || tree && strings.HasPrefix(pkg, allowed+"/")
	})
}

// isLibrary is false for what only tests, examples and commands may import.
func isLibrary(pkg string) bool {
	top, _, _ := strings.Cut(pkg, "/")
	return !slices.Contains([]string{"examples", "cmd", "bench"}, top) &&
		!isTest(pkg) && !strings.HasPrefix(pkg+"/", "internal/testdb/")
}

func isTest(pkg string) bool {
	return slices.ContainsFunc(strings.Split(pkg, "/"), func(name string) bool {
		return strings.HasSuffix(name, "test")
	})
}

// isFake: a fake is for users' tests too, and so is light, whatever it imports of ours.
func isFake(pkg string) bool { return isTest(pkg) && strings.HasPrefix(pkg, "client/") }

type node struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

func (n *node) ours() (pkg string, ok bool) {
	if n == nil || n.Module == nil || n.Module.Path != module {
		return "", false
	}
	return strings.TrimPrefix(strings.TrimPrefix(n.ImportPath, module), "/"), true
}

type graph map[string]*node

// faults returns every breach, one a line, in order.
func (g graph) faults() []string {
	var found []string
	for _, importPath := range slices.Sorted(maps.Keys(g)) {
		n := g[importPath]
		pkg, ok := n.ours()
		switch {
		case !ok:
		case isLibrary(pkg):
			found = append(found, g.badImports(n, pkg, lawOf(pkg))...)
			found = append(found, g.badModules(n, pkg, lawOf(pkg).modules)...)
		case isFake(pkg):
			found = append(found, g.badModules(n, pkg, slices.Concat(linked, standardWebhooks))...)
		}
	}
	return found
}

func (g graph) badImports(n *node, pkg string, l law) []string {
	var found []string
	for _, imported := range n.Imports {
		if target, ok := g[imported].ours(); ok && !l.allows(target) {
			found = append(found, fmt.Sprintf("%s imports %s", pkg, target))
		}
	}
	return found
}

func (g graph) badModules(n *node, pkg string, allowed []string) []string {
	var found []string
	for _, reached := range g.reach(n) {
		if m := reached.Module; !reached.Standard && m != nil && m.Path != module && !slices.Contains(allowed, m.Path) {
			found = append(found, fmt.Sprintf("%s is linked with %s", pkg, m.Path))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (g graph) reach(from *node) []*node {
	seen, queue := map[string]bool{}, slices.Clone(from.Imports)
	var reached []*node
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if n := g[next]; n != nil && !seen[next] {
			seen[next] = true
			reached = append(reached, n)
			queue = append(queue, n.Imports...)
		}
	}
	return reached
}

// list reads the real graph. Packages that do not compile just now are in it.
func list(t *testing.T) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Imports,Standard,Module", module+"/...")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, complaint.String())
	g := graph{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		n := new(node)
		err := decoder.Decode(n)
		if errors.Is(err, io.EOF) {
			return g
		}
		require.NoError(t, err)
		g[n.ImportPath] = n
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	g := list(t)
	require.Contains(t, g, module+"/verify", "the list is not of this module")
	require.Empty(t, g.faults())
}

// of writes a graph as importer -> imports: "./x" is ours, a name whose first
// part has no dot is the standard library's, the rest is a module of that name.
func of(lines map[string][]string) graph {
	g := graph{}
	add := func(name string) string {
		n := &node{ImportPath: name, Standard: !strings.Contains(strings.Split(name, "/")[0], ".")}
		if rel, ours := strings.CutPrefix(name, "./"); ours {
			n = &node{ImportPath: path.Join(module, rel), Module: &struct{ Path string }{module}}
		} else if !n.Standard {
			n.Module = &struct{ Path string }{name}
		}
		if g[n.ImportPath] == nil {
			g[n.ImportPath] = n
		}
		return n.ImportPath
	}
	for importer, imports := range lines {
		n := add(importer)
		for _, imported := range imports {
			g[n].Imports = append(g[n].Imports, add(imported))
		}
	}
	return g
}

func TestLaw(t *testing.T) {
	t.Parallel()
	const (
		pgx5    = "github.com/jackc/pgx/v5"
		testify = "github.com/stretchr/testify"
		sqlite  = "modernc.org/sqlite"
	)
	type lines = map[string][]string
	tests := map[string]struct {
		graph lines
		want  []string
	}{
		"all in order": {graph: lines{
			"./verify":                 {"crypto/hmac", "net/http"},
			"./client":                 {"net/http", backoff[0]},
			"./client/efa":             {"./client", "./client/internal/loose", "./events", "./verify", "./client/efa/internal/wire"},
			"./client/internal/loose":  {"./client", "net/mail"},
			"./client/efa/efatest":     {standardWebhooks[0], "./client/efa"},
			"./events":                 {"./verify", "./client", "go.opentelemetry.io/otel/metric"},
			"./events/doctor":          {"./events", "./client", "./verify", backoff[0]},
			"./dedupe":                 {"./events", "./events/doctor", "./internal/sqldb"},
			"./resume":                 {"./events", "./client", "./internal/sqldb", "./internal/schema"},
			"./resume/review":          {"./resume"},
			"./resume/resumetest":      {"./resume", "pgregory.net/rapid"},
			"./internal/sqldb":         {pgx5},
			"./internal/schema":        {"github.com/pressly/goose/v3"},
			"./internal/testdb":        {"github.com/ory/dockertest/v3", sqlite},
			"./internal/storetest":     {"./internal/testdb", testify},
			"./cmd/replywake":          {"./dedupe", "./resume", "github.com/alecthomas/kong"},
			"./examples/resume":        {"./client/efa/efatest", "./dedupe", "./resume", sqlite},
			"github.com/jackc/pgx/v5":  {"golang.org/x/text"},
			"go.uber.org/multierr":     {"fmt"},
			"github.com/unrelated/one": {testify},
		}},
		"verify imports a sister":       {lines{"./verify": {"./client"}}, []string{"verify imports client"}},
		"verify links a module":         {lines{"./verify": {backoff[0]}}, []string{"verify is linked with " + backoff[0]}},
		"client links a database":       {lines{"./client": {pgx5}}, []string{"client is linked with " + pgx5}},
		"client imports events":         {lines{"./client": {"./events"}}, []string{"client imports events"}},
		"client imports internal":       {lines{"./client": {"./internal/x"}}, []string{"client imports internal/x"}},
		"client imports its own":        {lines{"./client": {"./client/internal/x"}}, []string{"client imports client/internal/x"}},
		"client's own imports events":   {lines{"./client/internal/x": {"./events"}}, []string{"client/internal/x imports events"}},
		"client's own links a database": {lines{"./client/internal/x": {pgx5}}, []string{"client/internal/x is linked with " + pgx5}},
		"events imports client's own":   {lines{"./events": {"./client/internal/x"}}, []string{"events imports client/internal/x"}},
		"events imports a provider":     {lines{"./events": {"./client/efa"}}, []string{"events imports client/efa"}},
		"events imports the doctor":     {lines{"./events": {"./events/doctor"}}, []string{"events imports events/doctor"}},
		"the doctor imports dedupe":     {lines{"./events/doctor": {"./dedupe"}}, []string{"events/doctor imports dedupe"}},
		"the doctor links a database":   {lines{"./events/doctor": {pgx5}}, []string{"events/doctor is linked with " + pgx5}},
		"events imports dedupe":         {lines{"./events": {"./dedupe"}}, []string{"events imports dedupe"}},
		"dedupe imports resume":         {lines{"./dedupe": {"./resume"}}, []string{"dedupe imports resume"}},
		"dedupe imports verify":         {lines{"./dedupe": {"./verify"}}, []string{"dedupe imports verify"}},
		"resume imports dedupe":         {lines{"./resume": {"./dedupe"}}, []string{"resume imports dedupe"}},
		"resume imports its page":       {lines{"./resume": {"./resume/review"}}, []string{"resume imports resume/review"}},
		"resume's page imports dedupe":  {lines{"./resume/review": {"./dedupe"}}, []string{"resume/review imports dedupe"}},
		"a roundabout way to resume":    {lines{"./dedupe": {"./internal/x"}, "./internal/x": {"./resume"}}, []string{"internal/x imports resume"}},
		"one provider imports another":  {lines{"./client/efa": {"./client/goshen"}}, []string{"client/efa imports client/goshen"}},
		"a provider imports the engine": {lines{"./client/efa": {"./resume"}}, []string{"client/efa imports resume"}},
		"a library imports a fake":      {lines{"./client/efa": {"./client/efa/efatest"}}, []string{"client/efa imports client/efa/efatest"}},
		"a library imports an example":  {lines{"./resume": {"./examples/resume"}}, []string{"resume imports examples/resume"}},
		"a library imports the command": {lines{"./resume/review": {"./cmd/replywake"}}, []string{"resume/review imports cmd/replywake"}},
		"a library imports testdb":      {lines{"./internal/schema": {"./internal/testdb"}}, []string{"internal/schema imports internal/testdb"}},
		"a package nobody thought of":   {lines{"./util": {"./events", pgx5}}, []string{"util imports events", "util is linked with " + pgx5}},
		"a library links test code": {
			lines{"./dedupe": {testify, sqlite, "github.com/ory/dockertest/v3", "pgregory.net/rapid"}},
			[]string{
				"dedupe is linked with github.com/ory/dockertest/v3", "dedupe is linked with " + testify,
				"dedupe is linked with " + sqlite, "dedupe is linked with pgregory.net/rapid",
			},
		},
		"a library links the SDK": {
			lines{"./resume": {"go.opentelemetry.io/otel/sdk/metric"}},
			[]string{"resume is linked with go.opentelemetry.io/otel/sdk/metric"},
		},
		"a library links the reference verifier": {
			lines{"./events": {standardWebhooks[0]}},
			[]string{"events is linked with " + standardWebhooks[0]},
		},
		"a module's own new need": {
			lines{"./internal/schema": {"github.com/pressly/goose/v3"}, "github.com/pressly/goose/v3": {sqlite}, "./resume": {"./internal/schema"}},
			[]string{"internal/schema is linked with " + sqlite, "resume is linked with " + sqlite},
		},
		"a fake links too much": {lines{"./client/efa/efatest": {testify}}, []string{"client/efa/efatest is linked with " + testify}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, of(test.graph).faults())
		})
	}
}
