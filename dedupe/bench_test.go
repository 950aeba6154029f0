package dedupe_test

import (
	"testing"

	"github.com/replywake/replywake/dedupe"
)

func BenchmarkTake2500(b *testing.B) {
	s := sqlite(b)
	in := s.inbox(dedupe.Config{}, nil)
	n := 0
	for b.Loop() {
		take(b, in, page(n+1, n+2500))
		n += 2500
	}
}
