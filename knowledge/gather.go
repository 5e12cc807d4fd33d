package knowledge

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	bleveindex "github.com/blevesearch/bleve_index_api"
)

const (
	// mostPlaces is how many places a search goes through: a part of the question standing in a
	// document is one. The rarest parts come first, and what is left counts in what they found.
	// So a search takes as long in a million documents as in some ten thousand.
	mostPlaces = 60_000
	// bounded is what a document's score is at most, of what it is at least: each word stands in
	// it often. Sums of small numbers are a little off.
	bounded = (1 + saturation) * 1.001
)

// part is a part of a question in one field: a word, or a name.
type part struct {
	field, term string
	name        identifier // of no kind: it is a word
	documents   int
	says        float64 // what a document's score has at least for it
}

// match is a document that has parts of the question.
type match struct {
	num   uint64
	least float64 // what its score is at least
	words map[string]bool
	names map[identifier]bool
}

// parts are those that stand in any document, the rarest first.
func (q question) parts() []part {
	var out []part
	add := func(p part) {
		if p.documents > 0 {
			out = append(out, p)
		}
	}
	for term, n := range q.terms {
		says := q.weights[term] * q.weight(n)
		add(part{field: fieldText, term: term, documents: q.texts[term], says: says})
		add(part{field: fieldTitle, term: term, documents: q.titles[term], says: says * titleBonus})
	}
	for id, n := range q.ids {
		add(part{field: id.kind, term: id.name, name: id, documents: n, says: boosts[id.kind] * q.weight(n)})
	}
	slices.SortFunc(out, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.documents, b.documents), cmp.Compare(a.term, b.term), cmp.Compare(a.field, b.field))
	})
	return out
}

// sought are the parts that documents are found by: as many as go into so many places, and the
// rarest in any case. The others count in what these find.
func sought(parts []part, places int) []part {
	for n, p := range parts {
		if places -= p.documents; places < 0 && n > 0 {
			return parts[:n]
		}
	}
	return parts
}

// gather finds the documents that have most of what is asked, at most so many, best first.
func gather(ctx context.Context, r bleveindex.IndexReader, parts []part, places, most int) ([]match, error) {
	t, _ := tallies.Get().(*tally)
	defer t.putBack()
	for _, p := range sought(parts, places) {
		if err := t.add(ctx, r, p); err != nil {
			return nil, err
		}
	}
	out := t.best(most)
	slices.SortFunc(out, func(a, b match) int { return cmp.Compare(a.num, b.num) })
	for n := range out {
		out[n] = match{num: out[n].num, words: map[string]bool{}, names: map[identifier]bool{}}
	}
	for _, p := range parts {
		if err := having(ctx, r, p, out, func(m *match) {
			m.least += p.says
			if p.name.kind != "" {
				m.names[p.name] = true
			} else {
				m.words[p.term] = true
			}
		}); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.least, a.least), cmp.Compare(b.num, a.num))
	})
	return out, nil
}

// having hands over those of the matches, which are in order, that have a part.
func having(ctx context.Context, r bleveindex.IndexReader, p part, found []match, take func(*match)) (err error) {
	places, err := r.TermFieldReader(ctx, []byte(p.term), p.field, false, false, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, places.Close()) }()
	at, began := uint64(0), false
	var d bleveindex.TermFieldDoc
	var id bleveindex.IndexInternalID
	for n := range found {
		m := &found[n]
		if !began || at < m.num {
			id = bleveindex.NewIndexInternalID(id, m.num)
			next, err := places.Advance(id, &d)
			if err != nil || next == nil {
				return err
			}
			at, began = next.ID.Value(), true
		}
		if at == m.num {
			take(m)
		}
	}
	return nil
}

// tally is what the documents of an index score at least, by their numbers. It is kept for the
// next search: of a large library it is some megabytes.
type tally struct {
	least   []float32
	touched []uint32
}

var tallies = sync.Pool{New: func() any { return &tally{} }}

func (t *tally) putBack() {
	for _, n := range t.touched {
		t.least[n] = 0
	}
	t.touched = t.touched[:0]
	tallies.Put(t)
}

// add counts a part in every document that has it.
func (t *tally) add(ctx context.Context, r bleveindex.IndexReader, p part) (err error) {
	places, err := r.TermFieldReader(ctx, []byte(p.term), p.field, false, false, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, places.Close()) }()
	says := float32(p.says)
	var d bleveindex.TermFieldDoc
	for {
		next, err := places.Next(&d)
		if err != nil || next == nil {
			return err
		}
		n := next.ID.Value()
		if n >= math.MaxUint32 {
			return errors.New("the index has too many documents")
		}
		if int(n) >= len(t.least) {
			t.least = append(t.least, make([]float32, int(n)+1+len(t.least)/4-len(t.least))...)
		}
		if t.least[n] == 0 {
			t.touched = append(t.touched, uint32(n))
		}
		t.least[n] += says
	}
}

// best are the documents that score most, at most so many, in no order.
func (t *tally) best(most int) []match {
	out := make([]match, 0, min(most, len(t.touched)))
	worst := func(n int) bool { // of two that are equal the later one stays
		return out[n].least < out[0].least || out[n].least == out[0].least && out[n].num < out[0].num
	}
	bottom := func() { // the least of all comes first
		for n := range out {
			if worst(n) {
				out[0], out[n] = out[n], out[0]
			}
		}
	}
	for _, num := range t.touched {
		m := match{num: uint64(num), least: float64(t.least[num])}
		if len(out) < most {
			if out = append(out, m); len(out) == most {
				bottom()
			}
			continue
		}
		if m.least > out[0].least || m.least == out[0].least && m.num > out[0].num {
			out[0] = m
			bottom()
		}
	}
	return out
}
