package devices

import (
	"strings"
)

// Clauses splits a CEL expression at its top-level &&, so that each part can be
// asked by itself: all are true exactly where the whole is. Text inside strings,
// comments and brackets is left alone; where a weaker operator (||, ?:) stands at
// the top, the whole is one clause.
func Clauses(expression string) []string {
	expression = unwrap(strings.TrimSpace(expression))
	cuts, whole := topLevel(expression)
	if whole || len(cuts) == 0 {
		return []string{expression}
	}
	var out []string
	start := 0
	for _, at := range append(cuts, len(expression)) {
		out = append(out, Clauses(expression[start:at])...)
		start = at + len("&&")
	}
	return out
}

// unwrap takes off parentheses around the whole.
func unwrap(s string) string {
	for strings.HasPrefix(s, "(") {
		depth, end := 0, -1
		scan(s, func(i int) bool {
			switch s[i] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
			if depth == 0 {
				end = i
			}
			return depth > 0
		})
		if end != len(s)-1 {
			return s
		}
		s = strings.TrimSpace(s[1:end])
	}
	return s
}

// topLevel finds the && outside of all brackets; whole when they do not part the
// expression, because a weaker operator stands beside them.
func topLevel(s string) (cuts []int, whole bool) {
	depth := 0
	scan(s, func(i int) bool {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '?':
			// In .?field and [?index] it selects.
			whole = whole || depth == 0 && (i == 0 || s[i-1] != '.')
		case '&':
			if depth == 0 && strings.HasPrefix(s[i:], "&&") && (len(cuts) == 0 || cuts[len(cuts)-1] < i-1) {
				cuts = append(cuts, i)
			}
		case '|':
			whole = whole || depth == 0
		}
		return depth >= 0
	})
	return cuts, whole || depth != 0
}

// scan calls visit for every byte that is code, until it returns false.
func scan(s string, visit func(i int) bool) {
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "//"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return
			}
			i += n + 1
		case s[i] == '"' || s[i] == '\'':
			i = skipString(s, i)
		default:
			if !visit(i) {
				return
			}
			i++
		}
	}
}

// skipString returns the first byte after the string literal that begins at i. A
// prefix r makes a backslash an ordinary character; three quotes end with three.
func skipString(s string, i int) int {
	raw := rawPrefix(s[:i])
	quote := s[i : i+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], three) {
		quote = three
	}
	for i += len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		}
	}
	return len(s)
}

// rawPrefix says whether the text ends with r, br or rb as a word of its own.
func rawPrefix(before string) bool {
	word := before[len(strings.TrimRightFunc(before, isWord)):]
	switch strings.ToLower(word) {
	case "r", "br", "rb":
		return true
	}
	return false
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
