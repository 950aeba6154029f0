package efatest

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

const (
	defaultLimit = 25
	maxLimit     = 100
)

// limit is the page size that x asks for; false with the refusal.
func (s *Server) limit(x *exchange) (int, answer, bool) {
	q := x.r.URL.Query()
	for name := range q {
		if name != "limit" && name != "cursor" {
			s.violate("%s: undocumented parameter %q", x.op, name)
		}
	}
	if !q.Has("limit") {
		return defaultLimit, answer{}, true
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > maxLimit {
		return 0, s.invalid(x, codeInvalidRequest, "limit is 1 to 100, not "+strconv.Quote(q.Get("limit"))), false
	}
	return n, answer{}, true
}

// parseCursor reads 1 to 19 digits within the signed 64-bit range.
func parseCursor(c string) (int64, bool) {
	if len(c) < 1 || len(c) > 19 || strings.Trim(c, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(c, 10, 64)
	return n, err == nil
}

func (s *Server) listEvents(x *exchange) answer {
	limit, refused, valid := s.limit(x)
	if !valid {
		return refused
	}
	after, q := int64(0), x.r.URL.Query()
	if q.Has("cursor") {
		if after, valid = parseCursor(q.Get("cursor")); !valid {
			return s.invalid(x, codeInvalidCursor, "cursor is 1 to 19 digits, not "+strconv.Quote(q.Get("cursor")))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Has("cursor") && len(s.events) > 0 && after < s.events[0].seq-1 {
		return failure(http.StatusGone, codeCursorExpired, "the cursor lies before the oldest event")
	}
	return answer{status: http.StatusOK, body: s.eventPage(x.key, after, limit)}
}

// eventPage is called with mu held. It looks one row past the page, so that
// has_more is exact.
func (s *Server) eventPage(k Key, after int64, limit int) []byte {
	now, b := s.Now(), []byte(`{"data":[`)
	rows, last, more := 0, int64(0), false
	for _, e := range s.events[s.above(after):] {
		if e.visible.After(now) || !k.sees(e.inbox) {
			continue
		}
		if more = rows == limit; more {
			break
		}
		if rows++; rows > 1 {
			b = append(b, ',')
		}
		b, last = e.row(b, s.cfg.Environment), e.seq
	}
	next := "null"
	if rows > 0 {
		next = strconv.Quote(strconv.FormatInt(last, 10))
	}
	b = append(b, `],"next_cursor":`+next+`,"has_more":`...)
	return append(strconv.AppendBool(b, more), '}')
}

// A listing's cursor is opaque and holds characters that a query must escape.

func listCursor(seq int64) string {
	return "p+" + base64.StdEncoding.EncodeToString([]byte(strconv.FormatInt(seq, 10))) + "&="
}

func parseListCursor(c string) (int64, bool) {
	inner, opened := strings.CutPrefix(c, "p+")
	inner, closed := strings.CutSuffix(inner, "&=")
	b, err := base64.StdEncoding.DecodeString(inner)
	if err != nil || !opened || !closed {
		return 0, false
	}
	return parseCursor(string(b))
}
