package knowledge

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

const (
	// maxTerms bounds the words and the identifiers of one search; a diagnosis has
	// some 40.
	maxTerms = 256
	// Who asks in phrases says the weightiest first: each next one counts less, the last
	// still half.
	nextPhrase, lastPhrase = 0.06, 0.5
	// A profile also counts as what people call it: 2g for 2g.10gb.
	nickname = 0.5
)

// boosts are how much an identifier of a kind counts beside a word: it names the very
// thing that is asked about. A resource is what everybody here asks for, and a MIG
// resource also counts as its profile.
var boosts = map[string]float64{kindResource: 0.3, kindProfile: 1.5, kindCause: 2, kindError: 4, kindObject: 2}

// question is what is searched for, with how many documents hold each part.
type question struct {
	terms   map[string]int // analysed words → documents, the most of any field
	texts   map[string]int // and of each field
	titles  map[string]int
	weights map[string]float64 // of the words
	ids     map[identifier]int
	total   int       // documents in the index
	age     time.Time // of the newest of them
}

// ask reads what is asked in phrases, and counts it in what r reads.
func (i *Index) ask(ctx context.Context, r bleveindex.IndexReader, phrases []string) (question, error) {
	q := question{terms: map[string]int{}, texts: map[string]int{}, titles: map[string]int{}, weights: map[string]float64{}, ids: map[identifier]int{}, total: i.Len()}
	var err error
	if q.age, err = i.newest(); err != nil {
		return q, err
	}
	// A command line has "Xid" and "79" apart.
	ids, _ := scan(strings.ToValidUTF8(strings.Join(phrases, " "), " "))
	for _, id := range ids[:min(len(ids), maxTerms)] {
		q.ids[id] = 0
		if short, _, _ := strings.Cut(id.name, "."); id.kind == kindProfile {
			q.word(short, nickname)
		}
	}
	for n, phrase := range phrases {
		_, rest := scan(strings.ToValidUTF8(phrase, " "))
		for _, t := range i.words.Analyze([]byte(rest)) {
			// A number by itself says nothing: counts and slices are everywhere.
			if t.Type != analysis.Numeric {
				q.word(string(t.Term), max(lastPhrase, 1-nextPhrase*float64(n)))
			}
		}
	}
	return q, q.count(ctx, r)
}

// word adds a word; the most that it weighs anywhere counts.
func (q question) word(term string, weight float64) {
	if _, known := q.terms[term]; !known && len(q.terms) >= maxTerms {
		return
	}
	q.terms[term], q.weights[term] = 0, max(q.weights[term], weight)
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
			q.word(id.name, 1)
		}
	}
	for term := range q.terms {
		for field, of := range map[string]map[string]int{fieldText: q.texts, fieldTitle: q.titles} {
			n, err := documents(ctx, r, field, term)
			if err != nil {
				return err
			}
			of[term], q.terms[term] = n, max(q.terms[term], n)
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

// leastTotal is how many documents there are taken to be at least: of a handful of runbooks none
// tells what words are rare among people.
const leastTotal = 100

// weight is how much a part of the question says: the rarer the more.
func (q question) weight(n int) float64 {
	return math.Log(1 + (float64(max(q.total, leastTotal)-n)+0.5)/(float64(n)+0.5))
}
