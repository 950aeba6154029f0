package sqldb

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// Rows are rows for a statement's {rows …} mark, by column name. Values are
// strings, integers, booleans, durations and times (a bigint column, read with
// {time}).
type Rows []map[string]any

// json is what encoding/json makes of the rows, at a third of its cost: a push
// spends much of its time here.
func (r Rows) json() string {
	b := make([]byte, 0, 32+400*len(r))
	b = append(b, '[')
	for i, row := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		first := true
		for name, v := range row {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendText(b, name), ':')
			b = appendValue(b, v)
		}
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendText(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case time.Time:
		return appendValue(b, micros(v))
	case time.Duration:
		return strconv.AppendInt(b, v.Microseconds(), 10)
	}
	if text := reflect.ValueOf(v); text.Kind() == reflect.String { // by another name
		return appendText(b, text.String())
	}
	other, _ := json.Marshal(v) // an integer by another name always marshals
	return append(b, other...)
}

// appendText quotes what needs no escape itself.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(Text(s))
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
