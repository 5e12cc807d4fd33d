package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

const (
	// An identifier names the very thing that is asked about; a word of a title
	// is better chosen than one of the text.
	boostID, boostTitle = 10.0, 2.0
	// 93.8 % of recurring incidents recur within 20 days (RCACopilot, EuroSys'24):
	// what was written lately counts up to half as much again, halved every three weeks.
	recentBonus, halfLifeDays = 0.5, 21.0
	// A ticket that says how it ended is worth more than one that does not.
	resolvedFactor = 1.25
	// pool is how many candidates BM25 hands to the rules of relevance.
	pool = 50
	// maxTerms bounds the words and the identifiers of one search; a diagnosis has
	// some 40.
	maxTerms = 256
)

// question is what is searched for, with how many documents hold each part.
type question struct {
	terms map[string]int // analysed words → documents
	ids   map[string]int // identifiers → documents
	total int            // documents in the index
}

// Search returns at most limit documents like what words describe, best first;
// none when no document is like it. The words are free text and identifiers in
// any mixture, never query syntax: any of them may match.
//
// A document is like it when it shares an identifier that sets documents apart,
// or enough words, rare ones among them (see question.like). BM25 scores are not
// comparable between searches, so no threshold on the score could say that.
func (i *Index) Search(ctx context.Context, words []string, limit int) ([]Hit, error) {
	if limit <= 0 {
		return nil, errors.New("search: limit must be positive")
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.closed {
		return nil, errors.New("search: the index is closed")
	}
	q, err := i.ask(ctx, words)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if len(q.terms)+len(q.ids) == 0 {
		return nil, nil
	}
	req := bleve.NewSearchRequestOptions(q.query(), max(pool, limit), 0, false)
	req.IncludeLocations = true
	req.SortBy([]string{"-_score", "_id"})
	res, err := i.bleve.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var hits []Hit
	for _, m := range res.Hits {
		if q.like(m) {
			hits = append(hits, i.hit(q, m))
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.At.Compare(a.At), cmp.Compare(a.URL, b.URL))
	})
	return hits[:min(limit, len(hits))], nil
}

func (i *Index) ask(ctx context.Context, words []string) (question, error) {
	text := strings.ToValidUTF8(strings.Join(words, " "), " ")
	q := question{terms: map[string]int{}, ids: map[string]int{}, total: len(i.docs)}
	ids, rest := scan(text)
	for _, id := range ids[:min(len(ids), maxTerms)] {
		q.ids[id] = 0
	}
	for _, t := range i.words.Analyze([]byte(rest)) {
		if len(q.terms) >= maxTerms {
			break
		}
		// A number by itself says nothing: counts and slices are everywhere.
		if t.Type != analysis.Numeric {
			q.terms[string(t.Term)] = 0
		}
	}
	adv, err := i.bleve.Advanced()
	if err != nil {
		return q, err
	}
	r, err := adv.Reader()
	if err != nil {
		return q, err
	}
	err = errors.Join(count(ctx, r, q.terms, fieldText, fieldTitle), count(ctx, r, q.ids, fieldIDs))
	return q, errors.Join(err, r.Close())
}

// count notes in how many documents each term stands: the most of any field.
func count(ctx context.Context, r bleveindex.IndexReader, terms map[string]int, fields ...string) error {
	for term := range terms {
		for _, field := range fields {
			tfr, err := r.TermFieldReader(ctx, []byte(term), field, false, false, false)
			if err != nil {
				return err
			}
			terms[term] = max(terms[term], int(tfr.Count()))
			if err := tfr.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q question) query() query.Query {
	var clauses []query.Query
	term := func(t, field string, boost float64) {
		tq := bleve.NewTermQuery(t)
		tq.SetField(field)
		tq.SetBoost(boost)
		clauses = append(clauses, tq)
	}
	for _, t := range slices.Sorted(maps.Keys(q.terms)) {
		term(t, fieldText, 1)
		term(t, fieldTitle, boostTitle)
	}
	for _, id := range slices.Sorted(maps.Keys(q.ids)) {
		term(id, fieldIDs, boostID)
	}
	return bleve.NewDisjunctionQuery(clauses...)
}

// like says whether a matching document is about the same matter. It shares
//   - an identifier that at most half of the documents have (with fewer than
//     six documents nothing can be called common), or
//   - a quarter of the words asked that any document knows, two of them rare:
//     in at most a quarter of the documents. One rare word is chance, and many
//     common ones ("pod", "node", "waits") are in every document of the kind.
func (q question) like(m *search.DocumentMatch) bool {
	for id := range m.Locations[fieldIDs] {
		if q.ids[id] <= max(3, q.total/2) {
			return true
		}
	}
	shared, rare := 0, 0
	for t := range matched(m) {
		shared++
		if q.terms[t] <= max(1, q.total/4) {
			rare++
		}
	}
	known := 0
	for _, n := range q.terms {
		if n > 0 {
			known++
		}
	}
	// A search of one or two words that are both there asks for no more.
	return shared*4 >= known && rare >= min(2, known)
}

// matched are the words of the question that stand in the document.
func matched(m *search.DocumentMatch) map[string]bool {
	out := map[string]bool{}
	for _, field := range []string{fieldText, fieldTitle} {
		for t := range m.Locations[field] {
			out[t] = true
		}
	}
	return out
}

func (i *Index) hit(q question, m *search.DocumentMatch) Hit {
	d := i.docs[m.ID]
	score := m.Score
	// bleve scales a sum by the share of clauses that matched, which would let
	// many everyday words beat the one identifier that was asked about.
	for id := range m.Locations[fieldIDs] {
		score += boostID * q.weight(q.ids[id])
	}
	if !d.At.IsZero() {
		// Age is counted from the newest document, not from the clock: the same
		// folder gives the same answer whenever it is asked.
		days := i.newest.Sub(d.At).Hours() / 24
		score *= 1 + recentBonus*math.Exp2(-days/halfLifeDays)
	}
	if d.Resolved {
		score *= resolvedFactor
	}
	return Hit{
		Source: d.Source, Title: d.Title, URL: d.URL, At: d.At,
		Quote: q.quote(d.Text, m.Locations[fieldText]),
		Score: math.Round(score*1000) / 1000,
	}
}

// weight is how much a part of the question says: the rarer the more.
func (q question) weight(n int) float64 {
	return math.Log(1 + (float64(q.total-n)+0.5)/(float64(n)+0.5))
}
