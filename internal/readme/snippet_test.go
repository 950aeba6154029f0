package readme_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages that a snippet may use without an import clause.
var imports = []string{
	"context", "database/sql", "errors", "fmt", "log/slog", "net/http", "os", "time",
	"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool", "golang.org/x/sync/errgroup",
	module + "/client", module + "/client/efa", module + "/client/efa/efatest", module + "/client/goshen",
	module + "/dedupe", module + "/events/doctor", module + "/events", module + "/resume", module + "/verify",
}

const module = "github.com/replywake/replywake"

// What a snippet may use without declaring it.
const surroundings = `package snippet

var (
	ctx      context.Context
	err      error
	mux      *http.ServeMux
	pool     *pgxpool.Pool
	db       *sql.DB
	provider *efa.Client
	verifier *verify.Verifier
	inbox    *dedupe.Inbox
	sweeper  *events.Sweeper
	webhook  *events.Handler
	engine   *resume.PostgresEngine
	tx       pgx.Tx
)

type handler func(ctx context.Context, tx *sql.Tx, fresh []events.Event) error

func step(ctx context.Context, run *resume.Run) (resume.Next, error) { panic(0) }
func note(ctx context.Context, tx *sql.Tx, fresh []events.Event) error { panic(0) }
func existing(w http.ResponseWriter, r *http.Request) { panic(0) }
`

// TestSnippetsCompile type-checks each Go block of the documents. A block of
// statements stands in a function that returns an error. Unused variables are
// fine: a snippet ends where the reader goes on.
func TestSnippetsCompile(t *testing.T) {
	t.Parallel()
	exports := exportData(t)
	total := 0
	for _, p := range pages(t) {
		for _, s := range p.snippets() {
			total++
			for _, fault := range s.faults(t, exports) {
				t.Error(fault)
			}
		}
	}
	require.Positive(t, total, "the README has no Go")
}

var declaration = regexp.MustCompile(`(?m)^(func|type|const|package|import)\b`)

// file is the snippet as a Go file whose positions are the document's.
func (s snippet) file() string {
	at := fmt.Sprintf("//line %s:%d\n", s.page.name, s.line)
	switch {
	case strings.HasPrefix(s.code, "package "):
		return at + s.code
	case declaration.MatchString(s.code):
		return "package snippet\n" + importsOf(s.code) + at + s.code
	}
	return "package snippet\n" + importsOf(s.code) + "func _() error {\n" + at + s.code + "\nreturn nil\n}\n"
}

// importsOf imports what code uses, on one line.
func importsOf(code string) string {
	var b strings.Builder
	for _, p := range imports {
		if regexp.MustCompile(`\b` + nameOf(p) + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "import %q; ", p)
		}
	}
	return b.String() + "\n"
}

func nameOf(importPath string) string {
	if name := path.Base(importPath); name != "v5" {
		return name
	}
	return "pgx"
}

func (s snippet) faults(t *testing.T, exports types.Importer) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	around, err := parser.ParseFile(fset, "surroundings.go",
		strings.Replace(surroundings, "\n", "\n"+importsOf(surroundings), 1), 0)
	require.NoError(t, err)
	file, err := parser.ParseFile(fset, "snippet.go", s.file(), 0)
	if err != nil {
		return []string{err.Error()}
	}
	files := []*ast.File{file, around}
	if strings.HasPrefix(s.code, "package ") {
		files = files[:1]
	}
	config := types.Config{Importer: exports, Error: func(err error) {
		fault, ok := err.(types.Error) //nolint:errorlint // go/types passes it as it is
		if ok && fault.Soft {
			return
		}
		faults = append(faults, err.Error())
	}}
	// Declarations of a snippet stand before those around it, which then give way.
	_, _ = config.Check("snippet", fset, withoutTwins(files), nil)
	return faults
}

// withoutTwins drops from the last file the functions and types that the first
// declares itself.
func withoutTwins(files []*ast.File) []*ast.File {
	if len(files) < 2 {
		return files
	}
	own := map[string]bool{}
	for _, name := range declared(files[0]) {
		own[name] = true
	}
	var kept []ast.Decl
	for _, d := range files[1].Decls {
		if names := declaredBy(d); len(names) != 1 || !own[names[0]] {
			kept = append(kept, d)
		}
	}
	files[1].Decls = kept
	return files
}

func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		names = append(names, declaredBy(d)...)
	}
	return names
}

func declaredBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if ts, ok := spec.(*ast.TypeSpec); ok {
				names = append(names, ts.Name.Name)
			}
		}
	}
	return names
}

// exportData imports packages as the compiler wrote them.
func exportData(t *testing.T) types.Importer {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}, imports...)...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			files[name] = file
		}
	}
	return &locked{Importer: importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(files[name])
	})}
}

// locked is an importer for one at a time.
type locked struct {
	sync.Mutex
	types.Importer
}

func (l *locked) Import(name string) (*types.Package, error) {
	l.Lock()
	defer l.Unlock()
	return l.Importer.Import(name)
}

// TestExcerptsStandInTheirFiles: a block behind "<!-- from FILE -->" is a part
// of that file, line for line.
func TestExcerptsStandInTheirFiles(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, s := range p.snippets() {
			if s.from == "" {
				continue
			}
			require.Contains(t, dedent(read(t, s.from)), dedent(s.code), "%s:%d is not in %s", p.name, s.line, s.from)
		}
	}
}

// dedent drops each line's leading tabs and spaces: a README indents less.
func dedent(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t ")
	}
	return strings.Join(lines, "\n")
}
