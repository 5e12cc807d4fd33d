package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	bleveindex "github.com/blevesearch/bleve_index_api"
)

const (
	// pool is how many candidates there are for the rules of relevance, and largestPool how many
	// where some of them may not be told.
	pool, largestPool = 100, 6400
	// besideBest is what share of the best score another document has, to be told beside
	// it.
	besideBest = 0.4
)

// Allowed says whether somebody may be told of a document. Nil: of all.
type Allowed func(Document) bool

// Search returns at most limit documents like what phrases describe, best first; none
// when no document is like it. The phrases are free text and identifiers in any mixture,
// never query syntax, those that say most first: any word may match.
func (i *Index) Search(ctx context.Context, phrases []string, limit int) ([]Hit, error) {
	return i.SearchFor(ctx, nil, phrases, limit)
}

// SearchFor is Search among the documents that somebody may be told of.
func (i *Index) SearchFor(ctx context.Context, may Allowed, phrases []string, limit int) ([]Hit, error) {
	if limit <= 0 {
		return nil, errors.New("search: limit must be positive")
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.closed {
		return nil, errors.New("search: the index is closed")
	}
	q, found, err := i.find(ctx, may, phrases, limit)
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

// find is what is like the question, best first: the first so many of it at least.
func (i *Index) find(ctx context.Context, may Allowed, phrases []string, wanted int) (q question, found []candidate, err error) {
	adv, err := i.bleve.Advanced()
	if err != nil {
		return q, nil, err
	}
	r, err := adv.Reader()
	if err != nil {
		return q, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if q, err = i.ask(ctx, r, phrases); err != nil || len(q.terms)+len(q.ids) == 0 {
		return q, nil, err
	}
	parts := q.parts()
	for most := max(pool, wanted); ; most *= 4 {
		matches, err := gather(ctx, r, parts, mostPlaces, most)
		if err != nil {
			return q, nil, err
		}
		docs, forbidden, err := q.read(ctx, r, may, matches)
		if err != nil {
			return q, nil, err
		}
		out := i.compare(q, docs, wanted)
		// What may not be told takes no room from what may.
		if !forbidden || len(out) >= wanted || len(matches) < most || most >= largestPool {
			return q, beside(out), nil
		}
	}
}

// beside are those that are not far below the best.
func beside(out []candidate) []candidate {
	for n, c := range out {
		if c.score < besideBest*out[0].score {
			return out[:n]
		}
	}
	return out
}

// opened is a match that was read, with what its score is at least.
type opened struct {
	match
	id  string
	doc Document
}

// read opens those of the matches that are like the question and may be told, those first that
// score most at least.
func (q question) read(ctx context.Context, r bleveindex.IndexReader, may Allowed, matches []match) (out []opened, forbidden bool, err error) {
	for _, m := range matches {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if !q.like(m) {
			continue
		}
		id, err := r.ExternalID(bleveindex.NewIndexInternalID(nil, m.num))
		if err != nil {
			return nil, false, err
		}
		stored, err := storedIn(r, id)
		if err != nil {
			return nil, false, err
		}
		d, err := read(stored)
		if err != nil {
			return nil, false, err
		}
		if may != nil && !may(d) {
			forbidden = true
			continue
		}
		m.least *= q.worth(d)
		out = append(out, opened{m, id, d})
	}
	slices.SortStableFunc(out, func(a, b opened) int { return cmp.Compare(b.least, a.least) })
	return out, forbidden, nil
}

// compare holds documents against the question, best first, until none that is left can be among
// the first so many.
func (i *Index) compare(q question, docs []opened, wanted int) (out []candidate) {
	for _, o := range docs {
		if len(out) >= wanted && o.least*bounded < out[wanted-1].score {
			break
		}
		text, title := i.places(q, o.doc)
		c := candidate{id: o.id, doc: o.doc, score: math.Round(q.score(o, text, title)*1000) / 1000, words: text}
		at, _ := slices.BinarySearchFunc(out, c, better)
		out = slices.Insert(out, at, c)
	}
	return out
}

// better orders candidates.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), b.doc.At.Compare(a.doc.At), cmp.Compare(a.doc.URL, b.doc.URL), cmp.Compare(a.id, b.id))
}

// hits quote of each what says most; few are told, and to choose a quote takes longest.
func (q question) hits(found []candidate) []Hit {
	var out []Hit
	for _, c := range found {
		d := c.doc
		out = append(out, Hit{Source: d.Source, Title: d.Title, URL: d.URL, At: d.At, Who: d.Who, Where: d.PartName, Part: d.Part, Private: d.Private, Quote: q.quote(d.Text, c.words), Score: c.score})
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
