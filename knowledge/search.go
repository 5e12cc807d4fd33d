package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/blevesearch/bleve/v2"
)

const (
	// pool is how many candidates BM25 hands to the rules of relevance.
	pool = 100
	// besideBest is what share of the best score another document has, to be told beside
	// it.
	besideBest = 0.4
)

// Search returns at most limit documents like what phrases describe, best first; none
// when no document is like it. The phrases are free text and identifiers in any mixture,
// never query syntax, those that say most first: any word may match.
func (i *Index) Search(ctx context.Context, phrases []string, limit int) ([]Hit, error) {
	if limit <= 0 {
		return nil, errors.New("search: limit must be positive")
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.closed {
		return nil, errors.New("search: the index is closed")
	}
	q, found, err := i.find(ctx, phrases, limit)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return q.hits(found[:min(limit, len(found))]), nil
}

// candidate is a document that is like what was asked.
type candidate struct {
	id    string
	doc   Document
	score float64
	words map[string][]span // of the question, where they stand
}

// find is what is like the question, best first.
func (i *Index) find(ctx context.Context, phrases []string, atLeast int) (question, []candidate, error) {
	q, err := i.ask(ctx, phrases)
	if err != nil || len(q.terms)+len(q.ids) == 0 {
		return q, nil, err
	}
	req := bleve.NewSearchRequestOptions(q.query(), max(pool, atLeast), 0, false)
	req.IncludeLocations, req.Fields = true, []string{fieldDoc}
	res, err := i.bleve.SearchInContext(ctx, req)
	if err != nil {
		return q, nil, err
	}
	var out []candidate
	for _, m := range res.Hits {
		stored, _ := m.Fields[fieldDoc].(string)
		d, err := read(stored)
		if err != nil {
			return q, nil, err
		}
		if s := i.shared(q, d, m); q.like(s) {
			out = append(out, candidate{id: m.ID, doc: d, score: math.Round(q.score(d, s)*1000) / 1000, words: s.text})
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.doc.At.Compare(a.doc.At), cmp.Compare(a.doc.URL, b.doc.URL))
	})
	for n, c := range out {
		if c.score < besideBest*out[0].score {
			return q, out[:n], nil
		}
	}
	return q, out, nil
}

// hits quote of each what says most; few are told, and to choose a quote takes longest.
func (q question) hits(found []candidate) []Hit {
	var out []Hit
	for _, c := range found {
		d := c.doc
		out = append(out, Hit{Source: d.Source, Title: d.Title, URL: d.URL, At: d.At, Who: d.Who, Where: d.PartName, Quote: q.quote(d.Text, c.words), Score: c.score})
	}
	return out
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
