package goshentest

import (
	"net/http"
	"slices"
	"unicode/utf8"
)

func (s *Server) labelMessage(x *exchange) answer {
	return s.changeLabels(x, func() []*message {
		if m := s.find(x.inbox(), x.r.PathValue("message")); m != nil {
			return []*message{m}
		}
		return nil
	})
}

func (s *Server) labelThread(x *exchange) answer {
	return s.changeLabels(x, func() []*message { return s.threadOf(x.inbox(), x.r.PathValue("thread")) })
}

func (s *Server) changeLabels(x *exchange, which func() []*message) answer {
	o := x.object()
	add, okAdd := labelsOf(o["addLabels"])
	remove, okRemove := labelsOf(o["removeLabels"])
	for name := range o {
		okAdd = okAdd && (name == "addLabels" || name == "removeLabels")
	}
	if o == nil || !okAdd || !okRemove {
		return s.invalid(x, "the body is not lists of labels")
	}
	if slices.Contains(slices.Concat(add, remove), labelQuarantined) {
		return failure(http.StatusForbidden, "quarantine_review_required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := which()
	if len(list) == 0 {
		return failure(http.StatusNotFound, codeNotFound)
	}
	for _, m := range list {
		s.relabel(m, add, remove)
	}
	return ok(nil)
}

// labelsOf reads an optional list of labels.
func labelsOf(v any) ([]string, bool) {
	if v == nil {
		return nil, true
	}
	list, ok := textsOf(v)
	for _, label := range list {
		ok = ok && label != "" && utf8.RuneCountInString(label) <= 64
	}
	return list, ok && len(list) <= 50
}

func textsOf(v any) ([]string, bool) {
	rows, ok := v.([]any)
	list := make([]string, 0, len(rows))
	for _, row := range rows {
		text, isText := row.(string)
		list, ok = append(list, text), ok && isText
	}
	return list, ok
}
