package readme_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	isTest  = regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`)
)

// TestLinks: a link leads to a file and a heading that are there; one that is
// named as a test is leads to a file that has it.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.withoutFences(), -1) {
			name, target := strings.Trim(m[1], "`"), m[2]
			if strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			if file = path.Join(path.Dir(p.name), file); strings.HasPrefix(target, "#") {
				file = p.name
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s links to %s, which is not there", p.name, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", p.name, target)
			}
			if isTest.MatchString(name) && strings.HasSuffix(file, "_test.go") && !strings.Contains(read(t, file), "\nfunc "+name+"(") {
				t.Errorf("%s: %s has no %s", p.name, file, name)
			}
		}
	}
}

// anchors are the headings as GitHub names them.
func anchors(markdown string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(markdown, -1) {
		all = append(all, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

var variable = regexp.MustCompile("`([A-Z][A-Z_]*[A-Z])`")

// TestVariables: the README's tables have the variables that the service reads,
// all of them and no other.
func TestVariables(t *testing.T) {
	t.Parallel()
	var used, said []string
	code := read(t, "examples/resume/config.go") + read(t, "examples/resume/provider.go")
	for _, m := range regexp.MustCompile(`"([A-Z][A-Z_]{3,}[A-Z])"`).FindAllStringSubmatch(code, -1) {
		used = append(used, m[1])
	}
	for line := range strings.Lines(read(t, "README.md")) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if strings.HasPrefix(line, "|") {
			for _, m := range variable.FindAllStringSubmatch(cell, -1) {
				said = append(said, m[1])
			}
		}
	}
	require.ElementsMatch(t, sorted(used), sorted(said))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

var (
	table  = regexp.MustCompile(`(?ms)^create table \{s\}(\w+) \((.*?)^\);`)
	column = regexp.MustCompile(`(?m)^    (\w+) +[{a-z]`)
)

// TestSchema: docs/schema.md has every table and every column, and no other.
func TestSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "internal/schema/migrations/*.sql"))
	require.NoError(t, err)
	stored, said := map[string][]string{}, map[string][]string{}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		require.NoError(t, err)
		for _, m := range table.FindAllStringSubmatch(read(t, name), -1) {
			for _, c := range column.FindAllStringSubmatch(m[2], -1) {
				if c[1] != "primary" && c[1] != "unique" {
					stored[m[1]] = append(stored[m[1]], c[1])
				}
			}
			slices.Sort(stored[m[1]])
		}
	}
	name := ""
	for line := range strings.Lines(read(t, "docs/schema.md")) {
		if h, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			name = strings.Trim(h, "`")
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || stored[name] == nil {
			continue
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cell, -1) {
			said[name] = append(said[name], m[1])
		}
		slices.Sort(said[name])
	}
	require.NotEmpty(t, stored)
	for table, columns := range stored {
		require.Equal(t, columns, said[table], "columns of %s, as the migrations and as docs/schema.md have them", table)
	}
}
