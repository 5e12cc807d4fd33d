package knowledge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// many are threads by Zipf's law: some words stand nearly everywhere, most in few.
func many(n int) []Document {
	r := rand.New(rand.NewPCG(3, 4))
	z := rand.NewZipf(r, 1.2, 3, 4000)
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%dx ", z.Uint64())
		}
		if r.IntN(20) == 0 {
			fmt.Fprintf(&b, "Xid %d gpu-node-%d", r.IntN(9), r.IntN(50))
		}
		return b.String()
	}
	docs := make([]Document, n)
	for k := range docs {
		docs[k] = Document{ID: fmt.Sprint(k), Source: "slack", URL: fmt.Sprint(k), Title: words(4), Text: words(20 + r.IntN(20)), Resolved: k%3 == 0,
			At: day("2026-01-01").Add(time.Duration(r.IntN(300*24)) * time.Hour)}
	}
	return docs
}

// What is left out for time changes no answer: the first hits are those of who reads and scores
// every document that has any word of the question.
func TestFirstHitsAreExact(t *testing.T) {
	i := open(t, many(3000))
	adv, err := i.bleve.Advanced()
	if err != nil {
		t.Fatal(err)
	}
	r, err := adv.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rand := rand.New(rand.NewPCG(5, 6))
	found := 0
	for n := range 60 {
		var asked []string
		for range 3 + rand.IntN(30) {
			asked = append(asked, fmt.Sprintf("w%dx", int(math.Exp(rand.Float64()*8))))
		}
		if n%3 == 0 {
			asked = append(asked, fmt.Sprintf("Xid %d on gpu-node-%d", rand.IntN(9), rand.IntN(50)))
		}
		phrases := []string{strings.Join(asked, " ")}
		q, err := i.ask(t.Context(), r, phrases)
		if err != nil {
			t.Fatal(err)
		}
		matches, err := gather(t.Context(), r, q.parts(), math.MaxInt, i.Len())
		if err != nil {
			t.Fatal(err)
		}
		docs, _, err := q.read(t.Context(), r, nil, matches)
		if err != nil {
			t.Fatal(err)
		}
		all := beside(i.compare(q, docs, i.Len()))
		want := q.hits(all[:min(3, len(all))])
		got, err := i.Search(t.Context(), phrases, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", phrases, diff)
		}
		found += len(got)
	}
	if found < 60 {
		t.Errorf("only %d were found: that shows little", found)
	}
}

// A search goes through so many places and no more, the rarest parts first, whatever the library
// holds; a part that stands everywhere is sought alone.
func TestPlacesAreBounded(t *testing.T) {
	parts := func(documents ...int) []part {
		out := []part{}
		for _, n := range documents {
			out = append(out, part{documents: n})
		}
		return out
	}
	for _, tc := range []struct {
		of     []part
		sought int
	}{
		{parts(), 0}, {parts(1, 2, 3), 3}, {parts(10, 20, 30, 41), 3}, {parts(10, 20, 30, 40), 4}, {parts(1e6), 1}, {parts(1e6, 2e6), 1}, {parts(99, 1e6), 1},
	} {
		if got := sought(tc.of, 100); len(got) != tc.sought || !slices.Equal(got, tc.of[:len(got)]) {
			t.Errorf("%v: %v", tc.of, got)
		}
	}
}
