package narrate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
)

const (
	// mostSentences are shown; nobody on call reads more.
	mostSentences = 5
	// maxSentence is how long one may be, in characters, and mostCited how much it may rest on.
	maxSentence = 300
	mostCited   = 4
	// minQuote is the least that a quote shows, in characters, of a longer piece of evidence.
	minQuote = 8
)

// Why a sentence is dropped; they are values of a metric's label.
const (
	noEvidence = "no-evidence" // it names none, or none that there is
	noQuote    = "no-quote"    // what it quotes does not stand there
	unfit      = "unfit"       // it is no plain sentence, or asks something of its reader
	ungrounded = "ungrounded"  // it says what its evidence does not have
	surplus    = "surplus"     // there are enough, or it was said
)

// check lets sentences through that hold; of the others it says why they do not.
func (e evidence) check(claims []claim) (kept []diagnosis.Sentence, dropped []string) {
	for _, c := range claims {
		c.Text = drawing.Clean(c.Text, false)
		why := e.wrong(c)
		says := diagnosis.Sentence{Says: e.names.uncover(strings.Join(strings.Fields(c.Text), " "))}
		said := slices.ContainsFunc(kept, func(k diagnosis.Sentence) bool { return k.Says == says.Says })
		if why == "" && (said || len(kept) == mostSentences) {
			why = surplus
		}
		if why != "" {
			dropped = append(dropped, why)
			continue
		}
		for _, id := range c.IDs {
			if it, ok := e.of(id); ok && !slices.Contains(says.From, it.ref) {
				says.From = append(says.From, it.ref)
			}
		}
		kept = append(kept, says)
	}
	return kept, dropped
}

// wrong is the first check that a claim fails; empty: none.
func (e evidence) wrong(c claim) string {
	var all, offers []string
	quoted := false
	for _, id := range c.IDs {
		it, ok := e.of(id)
		if !ok {
			return noEvidence
		}
		all = append(all, it.text)
		if it.offer {
			offers = append(offers, it.text)
		}
		quoted = quoted || quotes(it.text, c.Quote)
	}
	switch {
	case len(c.IDs) == 0 || len(c.IDs) > mostCited:
		return noEvidence
	case !quoted:
		return noQuote
	case !plain(c.Text), asks(c.Text, strings.Join(offers, "\n")):
		return unfit
	case !grounded(c.Text, strings.Join(all, "\n")):
		return ungrounded
	}
	return ""
}

// quotes says whether a quote stands in a text, literally but for white space, and shows
// enough of it to mean anything.
func quotes(text, quote string) bool {
	quote = strings.Join(strings.Fields(quote), " ")
	return quote == text || utf8.RuneCountInString(quote) >= minQuote && strings.Contains(text, quote)
}
