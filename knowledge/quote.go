package knowledge

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quoteRunes is the longest quote: about four lines of a terminal.
const quoteRunes = 300

// span is a part of a text, in bytes.
type span struct{ start, end int }

var (
	paragraphEnd = regexp.MustCompile(`\n[ \t]*\n`)
	// A full stop inside "580.126" or "e.g. 3g" is followed by no capital letter.
	sentenceEnd = regexp.MustCompile(`[.!?…][)"'”’]*\s+`)
)

// quote is the passage of text that says most of what was asked: a paragraph,
// or as many sentences of a longer one as fit. It is verbatim.
func (q question) quote(text string, at map[string][]span) string {
	best, most := span{}, -1.0
	for _, s := range passages(text) {
		if v := q.value(text, s, at); v > most {
			best, most = s, v
		}
	}
	return text[best.start:best.end]
}

// value sums the weights of the different words and identifiers in s.
func (q question) value(text string, s span, at map[string][]span) float64 {
	v := 0.0
	for term, places := range at {
		for _, p := range places {
			if p.start >= s.start && p.end <= s.end {
				v += q.weight(q.terms[term])
				break
			}
		}
	}
	ids, _ := scan(text[s.start:s.end])
	for _, id := range ids {
		if n, asked := q.ids[id]; asked {
			v += boosts[id.kind] * q.weight(n)
		}
	}
	return v
}

// passages are the candidates for a quote, in order: whole paragraphs, and of
// those too long every run of sentences that fits.
func passages(text string) []span {
	var out []span
	for _, p := range cut(text, span{0, len(text)}, paragraphEnd) {
		if runes(text, p) <= quoteRunes {
			out = append(out, p)
			continue
		}
		sentences := cut(text, p, sentenceEnd)
		for i, first := range sentences {
			run := span{first.start, first.start}
			for _, s := range sentences[i:] {
				if runes(text, span{run.start, s.end}) > quoteRunes {
					break
				}
				run.end = s.end
			}
			if run.end == run.start {
				run = shorten(text, first)
			}
			out = append(out, run)
		}
	}
	return out
}

// cut parts s where sep ends a piece; pieces are trimmed and never empty.
func cut(text string, s span, sep *regexp.Regexp) []span {
	var out []span
	start := s.start
	add := func(end int) {
		piece := text[start:end]
		left := len(piece) - len(strings.TrimLeftFunc(piece, unicode.IsSpace))
		trimmed := strings.TrimSpace(piece)
		if trimmed != "" {
			out = append(out, span{start + left, start + left + len(trimmed)})
		}
	}
	for _, m := range sep.FindAllStringIndex(text[s.start:s.end], -1) {
		end := s.start + m[1]
		add(end)
		start = end
	}
	add(s.end)
	return out
}

// shorten cuts one endless sentence at a space, or at a character where it has
// none.
func shorten(text string, s span) span {
	end, n, space := s.start, 0, 0
	for i, r := range text[s.start:s.end] {
		if n == quoteRunes {
			break
		}
		n++
		if unicode.IsSpace(r) {
			space = s.start + i
		}
		end = s.start + i + utf8.RuneLen(r)
	}
	if space > s.start {
		end = space
	}
	return span{s.start, end}
}

func runes(text string, s span) int { return utf8.RuneCountInString(text[s.start:s.end]) }
