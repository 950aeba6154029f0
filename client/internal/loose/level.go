package loose

import "bytes"

// whole is the one value of a text that was checked.
func whole(text []byte) Value { return bytes.Trim(text, " \t\r\n") }

// level walks the values of one array or object, names included, and steps
// over what they hold. Its text was checked and is complete, so it looks for no
// faults and for no end.
type level struct {
	text []byte
	at   int
}

// more moves to the next value; false at the end of the level.
func (l *level) more() bool {
	for {
		switch l.text[l.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			l.at++
		case ']', '}':
			return false
		default:
			return true
		}
	}
}

// next takes the value and moves behind it.
func (l *level) next() Value {
	start := l.at
	switch l.text[start] {
	case '"':
		l.at = afterString(l.text, start)
	case '[', '{':
		l.at = afterNested(l.text, start)
	default:
		l.at = afterWord(l.text, start)
	}
	return l.text[start:l.at:l.at]
}

func afterString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func afterNested(text []byte, i int) int {
	for depth := 0; ; {
		switch text[i] {
		case '"':
			i = afterString(text, i)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if i++; depth == 0 {
			return i
		}
	}
}

// afterWord steps over a number, true, false or null.
func afterWord(text []byte, i int) int {
	for {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', ']', '}':
			return i
		}
		i++
	}
}
