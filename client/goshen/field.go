package goshen

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// texts are the strings of an array that are not empty.
func texts(fields loose.Object, name string) []string {
	var list []string
	rows, _ := fields.List(name)
	for _, row := range rows {
		if s := row.Text(); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func untrustedList(fields loose.Object, name string) []client.Untrusted {
	found := texts(fields, name)
	list := make([]client.Untrusted, len(found))
	for i, text := range found {
		list[i] = client.NewUntrusted(text)
	}
	return list
}

// number is a positive whole number; 0 where it is none.
func number(fields loose.Object, name string) int64 {
	n, err := strconv.ParseInt(string(fields.Get(name)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// hasControl says whether a text has a character that breaks or rewrites a
// line.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
	})
}

func isName(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !hasControl(s)
}
