package sqldb

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Text replaces what no text of Postgres holds: a NUL, and bytes that are not
// UTF-8. Errors and reasons may quote mail. Every argument of a statement is
// treated so, on SQLite too, so that both read the same; who compares what was
// read with what was given does it first.
func Text(s string) string {
	if isStorable(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func isStorable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func texts(list []string) []string {
	if !slices.ContainsFunc(list, func(s string) bool { return !isStorable(s) }) {
		return list
	}
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = Text(s)
	}
	return list
}
