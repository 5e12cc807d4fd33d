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
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

const (
	// A word of a title is better chosen than one of the text.
	boostTitle = 2.0
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

// boosts are how much an identifier of a kind counts beside a word: it names the very
// thing that is asked about. A resource is what everybody here asks for, and a MIG
// resource also counts as its profile.
var boosts = map[string]float64{kindResource: 1, kindProfile: 10, kindCause: 10, kindError: 10, kindObject: 10}

// question is what is searched for, with how many documents hold each part.
type question struct {
	terms map[string]int // analysed words → documents
	ids   map[identifier]int
	total int       // documents in the index
	age   time.Time // of the newest of them
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
	req.IncludeLocations, req.Fields = true, []string{fieldDoc}
	req.SortBy([]string{"-_score", "_id"})
	res, err := i.bleve.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var hits []Hit
	for _, m := range res.Hits {
		if !q.like(m) {
			continue
		}
		stored, _ := m.Fields[fieldDoc].(string)
		d, err := read(stored)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		hits = append(hits, q.hit(d, m))
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.At.Compare(a.At), cmp.Compare(a.URL, b.URL))
	})
	return hits[:min(limit, len(hits))], nil
}

func (i *Index) ask(ctx context.Context, words []string) (question, error) {
	text := strings.ToValidUTF8(strings.Join(words, " "), " ")
	q := question{terms: map[string]int{}, ids: map[identifier]int{}, total: i.Len()}
	var err error
	if q.age, err = i.newest(); err != nil {
		return q, err
	}
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
	return q, errors.Join(q.count(ctx, r), r.Close())
}

// count notes in how many documents each part stands: a word, the most of any field.
func (q question) count(ctx context.Context, r bleveindex.IndexReader) error {
	for id := range q.ids {
		n, err := documents(ctx, r, id.kind, id.name)
		if err != nil {
			return err
		}
		q.ids[id] = n
		if n > 0 || id.kind != kindCause {
			continue
		}
		// Who writes in a hurry writes "storageclass".
		if n, err = documents(ctx, r, fieldText, id.name); err != nil {
			return err
		}
		if n > 0 {
			q.terms[id.name] = n
		}
	}
	for term := range q.terms {
		for _, field := range []string{fieldText, fieldTitle} {
			n, err := documents(ctx, r, field, term)
			if err != nil {
				return err
			}
			q.terms[term] = max(q.terms[term], n)
		}
	}
	return nil
}

// documents is how many have a term in a field.
func documents(ctx context.Context, r bleveindex.IndexReader, field, term string) (int, error) {
	tfr, err := r.TermFieldReader(ctx, []byte(term), field, false, false, false)
	if err != nil {
		return 0, err
	}
	return int(tfr.Count()), tfr.Close()
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
	for id := range q.ids {
		term(id.name, id.kind, boosts[id.kind])
	}
	return bleve.NewDisjunctionQuery(clauses...)
}

// like says whether a matching document is about the same matter. It shares
//   - an identifier that at most half of the documents have (with fewer than
//     six documents nothing can be called common), or
//   - a quarter of the words asked, two of them rare: in at most a quarter of the
//     documents. One rare word is chance, unless only a word or two are asked, and
//     many common ones ("pod", "node", "waits") are in every document of the kind.
func (q question) like(m *search.DocumentMatch) bool {
	for id := range q.named(m) {
		if id.kind != kindResource && q.ids[id] <= max(3, q.total/2) {
			return true
		}
	}
	if len(q.terms) == 0 {
		return true // there is nothing else to go by than what it shares
	}
	shared, rare := 0, 0
	for t := range matched(m) {
		shared++
		if q.terms[t] <= max(1, q.total/4) {
			rare++
		}
	}
	enough := 2
	if len(q.terms) <= 2 {
		enough = 1 // a question of a word or two
	}
	return rare >= enough && shared*4 >= len(q.terms)
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

// named are the identifiers of the question that the document has.
func (q question) named(m *search.DocumentMatch) map[identifier]bool {
	out := map[identifier]bool{}
	for id := range q.ids {
		if _, ok := m.Locations[id.kind][id.name]; ok {
			out[id] = true
		}
	}
	return out
}

func (q question) hit(d Document, m *search.DocumentMatch) Hit {
	score := m.Score
	// bleve scales a sum by the share of clauses that matched, which would let
	// many everyday words beat the one identifier that was asked about.
	for id := range q.named(m) {
		score += boosts[id.kind] * q.weight(q.ids[id])
	}
	if !d.At.IsZero() {
		// Age is counted from the newest document, not from the clock: the same
		// folder gives the same answer whenever it is asked.
		days := q.age.Sub(d.At).Hours() / 24
		score *= 1 + recentBonus*math.Exp2(-days/halfLifeDays)
	}
	if d.Resolved {
		score *= resolvedFactor
	}
	return Hit{
		Source: d.Source, Title: d.Title, URL: d.URL, At: d.At, Who: d.Who, Where: d.PartName,
		Quote: q.quote(d.Text, m.Locations[fieldText]),
		Score: math.Round(score*1000) / 1000,
	}
}

// weight is how much a part of the question says: the rarer the more.
func (q question) weight(n int) float64 {
	return math.Log(1 + (float64(q.total-n)+0.5)/(float64(n)+0.5))
}

// SearchAll searches several indexes. Scores of different indexes cannot be compared,
// so they take turns, the first one first.
func SearchAll(ctx context.Context, indexes []*Index, words []string, limit int) ([]Hit, error) {
	var found [][]Hit
	for _, i := range indexes {
		hits, err := i.Search(ctx, words, limit)
		if err != nil {
			return nil, err
		}
		found = append(found, hits)
	}
	var out []Hit
	for rank := range limit {
		for _, hits := range found {
			if rank < len(hits) && len(out) < limit {
				out = append(out, hits[rank])
			}
		}
	}
	return out, nil
}
