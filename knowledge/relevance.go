package knowledge

import "math"

const (
	// 93.8 % of recurring incidents recur within 20 days (RCACopilot, EuroSys'24):
	// what was written lately counts up to a third as much again, halved every three
	// weeks.
	recentBonus, halfLifeDays = 0.3, 21.0
	// A ticket that says how it ended is worth more than one that does not.
	resolvedFactor = 1.15
	// A word said again adds little, and one of a title is better chosen.
	saturation, titleBonus = 0.5, 1.0

	// What a document shares with a question is enough when it tells as much as two words
	// and a bit that no other document has, and a fifth of all that was asked. These, and
	// besideBest, are the strictest within 2 % of the best on one half of the relevance set
	// (recall, nDCG, half of precision and twice the silences, summed): what is best there,
	// enoughWords 1.8, answers 3 of 13 questions of the other half that nobody ever answered.
	enoughWords, enoughShare = 2.2, 0.2
	// A question of a few words asks less than that in all.
	enoughOfFew = 0.6
	// Two of the words are rare: in at most a quarter of the documents. Of a question of a
	// word or two, one is, and that is enough.
	rareWord, rareWords = 4, 2
	// A name that so few have tells by itself, if it is not all that is shared of much.
	rareName, nameShare = 20, 0.1
)

// like says whether a matching document is about the same matter. BM25 scores are not
// comparable between searches; how much the shared words tell is, since it is counted in
// how few documents each stands.
func (q question) like(m match) bool {
	if len(q.terms) == 0 {
		return true // there is nothing else to go by than what it shares
	}
	asked, said, rare, named := 0.0, 0.0, 0, false
	for t, n := range q.terms {
		asked += q.weights[t] * q.weight(n)
	}
	for t := range m.words {
		said += q.weights[t] * q.weight(q.terms[t])
		if q.terms[t] <= max(1, q.total/rareWord) {
			rare++
		}
	}
	for id, n := range q.ids {
		if n > 0 || id.kind != kindCause { // our own names are no people's words
			asked += boosts[id.kind] * q.weight(n)
		}
	}
	for id := range m.names {
		said += boosts[id.kind] * q.weight(q.ids[id])
		named = named || id.kind != kindResource && q.ids[id] <= max(3, q.total/rareName)
	}
	if named && said >= nameShare*asked {
		return true
	}
	if len(q.terms)+len(q.ids) <= rareWords {
		return rare > 0
	}
	return rare >= rareWords && said >= enoughShare*asked && said >= min(enoughWords*q.weight(1), enoughOfFew*asked)
}

// score is BM25 over what was asked, with identifiers, age and the outcome; how long a document
// is does not count, for each is one thread. bleve's own scales a sum by the share of clauses that
// matched, which would let many everyday words beat the one identifier that was asked about.
func (q question) score(o opened, text map[string][]span, title map[string]bool) float64 {
	score := 0.0
	for t := range o.words {
		n := float64(len(text[t]))
		often := n * (1 + saturation) / (n + saturation)
		if title[t] {
			often += titleBonus
		}
		score += q.weights[t] * q.weight(q.terms[t]) * often
	}
	for id := range o.names {
		score += boosts[id.kind] * q.weight(q.ids[id])
	}
	return score * q.worth(o.doc)
}

// worth is what a document's age and outcome make of its score.
func (q question) worth(d Document) float64 {
	worth := 1.0
	if !d.At.IsZero() {
		// Age is counted from the newest document, not from the clock: the same
		// folder gives the same answer whenever it is asked.
		days := q.age.Sub(d.At).Hours() / 24
		worth += recentBonus * math.Exp2(-days/halfLifeDays)
	}
	if d.Resolved {
		worth *= resolvedFactor
	}
	return worth
}

// places are where in a document the words of a question stand, and which stand in its title. The
// document is read again: to keep that in the index would double it, and only the few that may be
// told are asked.
func (i *Index) places(q question, d Document) (text map[string][]span, title map[string]bool) {
	text, title = map[string][]span{}, map[string]bool{}
	for _, t := range i.words.Analyze([]byte(separable.Replace(d.Text))) {
		if _, asked := q.terms[string(t.Term)]; asked {
			text[string(t.Term)] = append(text[string(t.Term)], span{t.Start, t.End})
		}
	}
	for _, t := range i.words.Analyze([]byte(separable.Replace(d.Title))) {
		if _, asked := q.terms[string(t.Term)]; asked {
			title[string(t.Term)] = true
		}
	}
	return text, title
}
