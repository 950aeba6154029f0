package readme_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A count of lines in a document is followed by what was counted:
//
//	112 lines<!-- examples/resume/main.go -->             a file
//	18 lines<!-- examples/sweeper/agent.go receive -->    a function of it
//	1 line<!-- examples/handler/service.go verifier. -->  the lines that hold a text
//
// Lines that are blank or hold only a comment do not count.
var counted = regexp.MustCompile(`(\d+) lines?<!-- (\S+\.go)(?: (\S+))? -->`)

func TestLineCounts(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, p := range pages(t) {
		for _, m := range counted.FindAllStringSubmatch(p.text, -1) {
			said, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			require.Equal(t, count(t, m[2], m[3]), said, "%s says %s lines of %s %s", p.name, m[1], m[2], m[3])
			found[m[2]] = said
		}
	}
	// What the README promises of the three ways in.
	require.Equal(t, 1, found["examples/handler/service.go"])
	require.Contains(t, found, "examples/sweeper/agent.go")
	require.Contains(t, found, "examples/resume/main.go")
	require.Less(t, found["examples/resume/main.go"], 150)
}

// count counts the lines of code of a file, of one of its functions, or those
// that hold a text that ends with a full stop.
func count(t *testing.T, file, what string) int {
	t.Helper()
	text := read(t, file)
	lines := codeLines(text)
	switch {
	case strings.HasSuffix(what, "."):
		holding := 0
		for i, line := range strings.Split(text, "\n") {
			if lines[i+1] && strings.Contains(line, what) {
				holding++
			}
		}
		return holding
	case what != "":
		from, to := function(t, file, text, what)
		within := 0
		for line := range lines {
			if line >= from && line <= to {
				within++
			}
		}
		return within
	}
	return len(lines)
}

// codeLines are the numbers of the lines that hold more than a comment.
func codeLines(text string) map[int]bool {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		for i := range strings.Count(literal, "\n") + 1 {
			lines[file.Line(pos)+i] = true
		}
	}
}

func function(t *testing.T, file, text, name string) (from, to int) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
			return fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
		}
	}
	require.Failf(t, "no such function", "%s in %s", name, file)
	return 0, 0
}

func TestCountingLines(t *testing.T) {
	t.Parallel()
	lines := codeLines("package x\n\n// a comment\nvar s = `two\nlines` // and one\n/* not\nthis */\n")
	require.Equal(t, map[int]bool{1: true, 4: true, 5: true}, lines)
}
