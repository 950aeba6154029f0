package sqldb

import (
	"encoding/json"
	"time"
)

// Rows are rows for a statement's {rows …} mark, by column name. Values are
// strings, integers, booleans and times (a bigint column, read with {time}).
type Rows []map[string]any

func (r Rows) json() string {
	if len(r) == 0 {
		return "[]"
	}
	for _, row := range r {
		for k, v := range row {
			switch t := v.(type) {
			case time.Time:
				row[k] = micros(t)
			case time.Duration:
				row[k] = t.Microseconds()
			}
		}
	}
	b, _ := json.Marshal(r) // the values named above always marshal
	return string(b)
}
