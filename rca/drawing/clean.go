package drawing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainTwins are the characters of our own texts that ASCII terminals get in
// another form; each stays one column wide where it can.
var plainTwins = map[rune]string{
	'×': "x", '·': ".", '…': "~", '–': "-", '—': "-", '→': "->", '▸': ">",
	'“': `"`, '”': `"`, '‘': "'", '’': "'", '≥': ">=", '≤': "<=", '\u00a0': " ",
}

// Clean makes a string from an object of the cluster safe to print on one line:
// control characters (C0, DEL, C1, so also every ESC, CSI and OSC), characters
// that turn the direction of text, and invisible ones are taken out, line
// breaks and tabs become spaces. In ASCII mode what has no twin becomes "?".
func Clean(s string, ascii bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // bytes that are no UTF-8 come as U+FFFD
		switch {
		case r == '\n' || r == '\t' || r == '\r' || unicode.In(r, unicode.Zl, unicode.Zp):
			b.WriteByte(' ')
		case unicode.Is(unicode.Cc, r), invisible(r):
		case !ascii || r < utf8.RuneSelf:
			b.WriteRune(r)
		case plainTwins[r] != "":
			b.WriteString(plainTwins[r])
		case !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Cf, r):
			b.WriteByte('?')
		}
	}
	return b.String()
}

// invisible are the format characters: bidi marks, embeddings, overrides and
// isolates, zero-width spaces, tags. The two joiners stay: Indic scripts and
// emoji are wrong without them.
func invisible(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return unicode.Is(unicode.Cf, r) && r != nonJoiner && r != joiner
}
