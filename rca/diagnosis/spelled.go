package diagnosis

import (
	"strings"
	"unicode"
)

// Misspelled says whether one name is another with a slip of the pen: other punctuation or case, a
// letter too many or too few, two neighbours swapped. Another letter or digit is another name: pool-a
// is not pool-b.
func Misspelled(a, b string) bool {
	a, b = Plain(a), Plain(b)
	if a == b {
		return a != ""
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	switch len(b) - len(a) {
	case 1:
		return len(a) >= leastWord && unicode.IsLetter(rune(b[at])) && a[at:] == b[at+1:]
	case 0:
		return len(a) >= leastWord && at+1 < len(a) && a[at] == b[at+1] && a[at+1] == b[at] && a[at+2:] == b[at+2:]
	}
	return false
}

// leastWord is how long a name is in which a slip can be told from another word.
const leastWord = 4

// Plain are the letters and digits of a name.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}
