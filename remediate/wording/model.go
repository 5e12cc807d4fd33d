package wording

import (
	"strings"

	"github.com/unpend/unpend/remediate/notice"
)

// Reworded is what a model made of a finding, a line each, under what it is: nothing where there
// is none, or nobody waits any more. Each line ends in what it rests on.
func Reworded(p notice.Proposal) (title string, lines []string) {
	w := p.Wording
	if w == nil || len(w.Sentences) == 0 || p.Finding == nil || !p.Resolved.IsZero() {
		return "", nil
	}
	for _, s := range w.Sentences[:min(mostWords, len(w.Sentences))] {
		from := ""
		if len(s.From) > 0 {
			from = " [" + strings.Join(s.From, ", ") + "]"
		}
		lines = append(lines, s.Says+from)
	}
	return "In the words of a model (" + Fit(Clean(w.Model), longName) + "), which decides nothing", lines
}

// mostWords are the sentences that people are shown of a model.
const mostWords = 5
