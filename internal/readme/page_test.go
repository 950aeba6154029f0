package readme_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// page is a Markdown file, named relative to the repository.
type page struct {
	name, text string
}

// pages are the README and what lies in docs.
func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	var all []page
	for _, file := range append([]string{filepath.Join(root, "README.md")}, files...) {
		name, err := filepath.Rel(root, file)
		require.NoError(t, err)
		all = append(all, page{filepath.ToSlash(name), read(t, name)})
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// snippet is a fenced block of Go.
type snippet struct {
	page page
	line int // of its first line
	code string
	from string // the file it is said to be taken from; empty for none
}

const excerpt = "<!-- from "

func (p page) snippets() []snippet {
	var all []snippet
	var open *snippet
	before := ""
	for i, line := range strings.Split(p.text, "\n") {
		switch {
		case open == nil && line == "```go":
			open = &snippet{page: p, line: i + 2}
			if from, ok := strings.CutPrefix(before, excerpt); ok {
				open.from = strings.TrimSpace(strings.TrimSuffix(from, "-->"))
			}
		case open != nil && line == "```":
			all = append(all, *open)
			open = nil
		case open != nil:
			open.code += line + "\n"
		}
		if line != "" {
			before = line
		}
	}
	return all
}

// withoutFences is the text outside of fenced blocks.
func (p page) withoutFences() string {
	var b strings.Builder
	fenced := false
	for line := range strings.SplitSeq(p.text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
