package client

import (
	"strings"
	"unicode/utf8"
)

// The parameters of RFC 3492, section 5.
const (
	punyBase        = 36
	punyTMin        = 1
	punyTMax        = 26
	punySkew        = 38
	punyDamp        = 700
	punyInitialBias = 72
	punyInitialN    = 128
)

// punycode encodes a label by RFC 3492, section 6.3. A label of at most 63
// characters cannot overflow a step, so there is no check for it.
func punycode(label string) string {
	runes := []rune(label)
	var out strings.Builder
	for _, r := range runes {
		if r < utf8.RuneSelf {
			out.WriteByte(byte(r))
		}
	}
	basic := out.Len()
	if basic > 0 {
		out.WriteByte('-')
	}
	n, delta, bias := rune(punyInitialN), 0, punyInitialBias
	for done := basic; done < len(runes); {
		next := smallestFrom(runes, n)
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			switch {
			case r < n:
				delta++
			case r == n:
				writePunyDelta(&out, delta, bias)
				bias = adaptPuny(delta, done+1, done == basic)
				delta = 0
				done++
			}
		}
		delta++
		n++
	}
	return out.String()
}

func smallestFrom(runes []rune, n rune) rune {
	smallest := rune(utf8.MaxRune)
	for _, r := range runes {
		if r >= n && r < smallest {
			smallest = r
		}
	}
	return smallest
}

// writePunyDelta writes one delta as a variable-length integer.
func writePunyDelta(out *strings.Builder, delta, bias int) {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyTMin), punyTMax)
		if delta < t {
			out.WriteByte(digits[delta])
			return
		}
		out.WriteByte(digits[t+(delta-t)%(punyBase-t)])
		delta = (delta - t) / (punyBase - t)
	}
}

func adaptPuny(delta, points int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > ((punyBase-punyTMin)*punyTMax)/2; k += punyBase {
		delta /= punyBase - punyTMin
	}
	return k + (punyBase-punyTMin+1)*delta/(delta+punySkew)
}
