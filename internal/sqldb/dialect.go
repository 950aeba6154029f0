package sqldb

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Dialect renders statements for one database and one schema.
type Dialect struct {
	SQLite bool
	Schema string // Postgres only
}

var (
	markIn    = regexp.MustCompile(`\{in (\$\d+) (\w+)\}`)
	markRows  = regexp.MustCompile(`\{rows (\$\d+) ([^}]*)\}`)
	markList  = regexp.MustCompile(`\{list (\$\d+) (\w+)\}`)
	markTime  = regexp.MustCompile(`\{time ([\w.]+)\}`)
	markAfter = regexp.MustCompile(`\{after (\$\d+|[\w.]+)\}`)
	parameter = regexp.MustCompile(`\$(\d+)`)
)

// Render writes a statement's marks out:
//
//	{s}name                 a table of ours
//	{now}                   the database's clock, on Postgres as the transaction began
//	{clock}                 the same as it stands, however long the transaction takes
//	{after $1}              that many microseconds from now
//	{lock}, {skip}          FOR UPDATE, FOR UPDATE SKIP LOCKED (SQLite has one writer)
//	x {in $1 text}          x = ANY of a []string or []int64
//	{list $1 text} as l     its elements as rows; the column is l.value
//	{rows $1 a text, b int} as r   rows of a [Rows] value, with columns r.a, r.b
//	{time r.a}              a bigint of microseconds from rows as a time
//	$1                      a parameter
func (d Dialect) Render(s string) string {
	if d.SQLite {
		return d.renderSQLite(s)
	}
	s = markIn.ReplaceAllString(s, "= any($1::$2[])")
	s = markList.ReplaceAllString(s, "(select value from unnest($1::$2[]) with ordinality as u(value, n) order by n)")
	s = markRows.ReplaceAllStringFunc(s, func(m string) string {
		p := markRows.FindStringSubmatch(m)
		return fmt.Sprintf("(select * from jsonb_to_recordset(%s::jsonb) as j(%s))", p[1], p[2])
	})
	s = markTime.ReplaceAllString(s, "(timestamptz 'epoch' + $1 * interval '1 microsecond')")
	s = markAfter.ReplaceAllStringFunc(s, func(m string) string {
		return "(now() + " + markAfter.FindStringSubmatch(m)[1] + "::bigint * interval '1 microsecond')"
	})
	return strings.NewReplacer("{s}", quoteIdent(d.Schema)+".", "{now}", "now()", "{clock}", "clock_timestamp()",
		"{lock}", "for update", "{skip}", "for update skip locked").Replace(s)
}

const liteNow = "cast(unixepoch('subsec') * 1000000 as integer)"

func (d Dialect) renderSQLite(s string) string {
	s = markIn.ReplaceAllString(s, "in (select value from json_each($1))")
	s = markList.ReplaceAllString(s, "(select value from json_each($1))")
	s = markRows.ReplaceAllStringFunc(s, func(m string) string {
		p := markRows.FindStringSubmatch(m)
		var cols []string
		for c := range strings.SplitSeq(p[2], ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(c), " ")
			cols = append(cols, fmt.Sprintf("json_extract(value, '$.%s') as %s", name, name))
		}
		return fmt.Sprintf("(select %s from json_each(%s))", strings.Join(cols, ", "), p[1])
	})
	s = markTime.ReplaceAllString(s, "$1")
	s = markAfter.ReplaceAllStringFunc(s, func(m string) string {
		return "(" + liteNow + " + " + markAfter.FindStringSubmatch(m)[1] + ")"
	})
	s = parameter.ReplaceAllString(s, "?$1")
	return strings.NewReplacer("{s}", "replywake_", "{now}", liteNow, "{clock}", liteNow, "{lock}", "", "{skip}", "").Replace(s)
}

// RenderAll renders every string field of the struct that st points to.
func (d Dialect) RenderAll(st any) {
	v := reflect.ValueOf(st).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String {
			f.SetString(d.Render(f.String()))
		}
	}
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
