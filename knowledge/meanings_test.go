package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embedtest"
)

// model embeds in this process.
type model struct {
	name       string
	dimensions func(text string) int
	err        error
	asked      []int // how many texts a request had
}

func (m *model) Model() string { return m.name }

func (m *model) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.asked = append(m.asked, len(texts))
	if m.err != nil {
		return nil, m.err
	}
	out := make([][]float32, len(texts))
	for n, text := range texts {
		out[n] = embedtest.Vector(text, m.dimensions(text))
	}
	return out, nil
}

func always(n int) func(string) int { return func(string) int { return n } }

// shelf is a source of documents.
type shelf []knowledge.Document

func (s shelf) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	for _, d := range s {
		if err := to.Add(ctx, d); err != nil {
			return nil, err
		}
	}
	return []knowledge.Whole{{Source: "doc", Part: "p"}}, nil
}

func book(n int, text string) knowledge.Document {
	return knowledge.Document{ID: fmt.Sprint("doc/", n), Source: "doc", Part: "p", Title: "t", URL: fmt.Sprint(n), Text: text}
}

func library(t *testing.T, docs ...knowledge.Document) *knowledge.Library {
	t.Helper()
	l, err := knowledge.EditLibrary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	put(t, l, docs...)
	return l
}

func put(t *testing.T, l *knowledge.Library, docs ...knowledge.Document) {
	t.Helper()
	if _, err := l.Import(t.Context(), shelf(docs), "doc", "shelf", time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func learn(t *testing.T, l *knowledge.Library, m *model) (*knowledge.Meanings, knowledge.Learned) {
	t.Helper()
	meanings, err := l.Meanings(m)
	if err != nil {
		t.Fatal(err)
	}
	done, err := meanings.Learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return meanings, done
}

// Only what is new or was edited is asked for, in batches; what is gone is dropped.
func TestLearnsWhatChanged(t *testing.T) {
	var docs []knowledge.Document
	for n := range 150 {
		docs = append(docs, book(n, fmt.Sprintf("matter %d of the day", n)))
	}
	l, m := library(t, docs...), &model{name: "m", dimensions: always(32)}
	nothing := map[string]int{}
	_, done := learn(t, l, m)
	if diff := cmp.Diff(knowledge.Learned{Made: 150, Skipped: nothing}, done); diff != "" {
		t.Error(diff)
	}
	docs[7].Text, docs = "edited", docs[:149]
	put(t, l, docs...)
	_, done = learn(t, l, m)
	if diff := cmp.Diff(knowledge.Learned{Made: 1, Same: 148, Gone: 1, Skipped: nothing}, done); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{64, 64, 22, 1}, m.asked); diff != "" {
		t.Error(diff)
	}
	// Another model's vectors are made from the beginning.
	other := &model{name: "other", dimensions: always(16)}
	if _, done = learn(t, l, other); done.Made != 149 {
		t.Errorf("%+v", done)
	}
}

// A vector of another length is left out and counted; its document is found by words.
func TestAnotherDimensionIsLeftOut(t *testing.T) {
	l := library(t, book(1, "the riser was loose"), book(2, "quota of the team was raised"), book(3, "firmware update and a cordon"))
	m := &model{name: "m", dimensions: func(text string) int { return 32 + 8*strings.Count(text, "quota") }}
	meanings, done := learn(t, l, m)
	want := knowledge.Learned{Made: 2, Skipped: map[string]int{"the model answered with 40 dimensions, the others have 32": 1}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	if hits, err := meanings.Search(t.Context(), []string{"team raised"}, 3); err != nil || len(hits) != 1 || hits[0].URL != "2" {
		t.Errorf("%+v, %v", hits, err)
	}
	// So is a question: the words answer, and the error says what to do.
	if hits, err := meanings.Search(t.Context(), []string{"quota raised"}, 3); err == nil || !strings.Contains(err.Error(), "40 dimensions, the library's have 32: if it is another model by now, remove ") || len(hits) != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
	m.err = errors.New("the endpoint is down")
	if hits, err := meanings.Search(t.Context(), []string{"loose riser"}, 3); !errors.Is(err, m.err) || len(hits) != 1 || hits[0].URL != "1" {
		t.Errorf("%+v, %v", hits, err)
	}
}

// Where the model itself is another one by now, under its name, all is learnt again: one odd answer
// is no sign of that, and what it answers for a document that it knew is.
func TestAnotherModelByTheSameName(t *testing.T) {
	docs := []knowledge.Document{book(1, "the riser was loose"), book(2, "quota of the team was raised")}
	l, m := library(t, docs...), &model{name: "m", dimensions: always(32)}
	meanings, _ := learn(t, l, m)
	m.dimensions = always(40)
	if _, err := meanings.Search(t.Context(), []string{"loose riser"}, 3); err == nil {
		t.Error("vectors of another length are compared")
	}
	for _, want := range []knowledge.Learned{{Made: 2, Skipped: map[string]int{}}, {Same: 2, Skipped: map[string]int{}}} {
		done, err := meanings.Learn(t.Context())
		if diff := cmp.Diff(want, done); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	m.dimensions = always(48)
	put(t, l, append(docs, book(3, "firmware update and a cordon"))...)
	if done, err := meanings.Learn(t.Context()); err != nil || done.Made != 3 || len(done.Skipped) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if hits, err := meanings.Search(t.Context(), []string{"loose riser"}, 3); err != nil || len(hits) != 1 || hits[0].URL != "1" {
		t.Errorf("%+v, %v", hits, err)
	}
	m.err = errors.New("the endpoint is down")
	if done, err := meanings.Learn(t.Context()); err != nil || done.Same != 3 {
		t.Errorf("nothing is new, and it asks: %+v, %v", done, err)
	}
}

// What was learnt before the endpoint failed, or the process was killed, stays.
func TestLearningGoesOn(t *testing.T) {
	var docs []knowledge.Document
	for n := range 130 {
		docs = append(docs, book(n, fmt.Sprintf("matter %d of the day", n)))
	}
	l, m := library(t, docs...), &model{name: "m"}
	m.dimensions = func(string) int {
		if len(m.asked) == 2 {
			m.err = errors.New("down")
		}
		return 32
	}
	meanings, err := l.Meanings(m)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := meanings.Learn(t.Context()); !errors.Is(err, m.err) || done.Made != 128 {
		t.Fatalf("%+v, %v", done, err)
	}
	m.err, m.dimensions = nil, always(32)
	if _, done := learn(t, l, m); done.Made != 2 || done.Same != 128 {
		t.Errorf("%+v", done)
	}
}

// A file that is cut anywhere, or is something else, is no half of an index.
func TestBrokenVectorsAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	l, err := knowledge.EditLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put(t, l, book(1, "the riser was loose"), book(2, "quota of the team was raised"))
	m := &model{name: "m", dimensions: always(32)}
	learn(t, l, m)
	file := filepath.Join(dir, "vectors")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if cut%7 != 0 && cut < len(whole)-9 {
			continue
		}
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, done := learn(t, l, m); done.Made != 2 {
			t.Fatalf("cut at %d of %d: %+v", cut, len(whole), done)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What is forgotten is forgotten by its meaning, too.
func TestForgottenVectors(t *testing.T) {
	dir := t.TempDir()
	l, err := knowledge.EditLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put(t, l, book(1, "the riser was loose"), book(2, "quota of the team was raised"))
	m := &model{name: "m", dimensions: always(32)}
	learn(t, l, m)
	if n, err := l.Forget(t.Context(), "doc/2"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "vectors"))
	if err != nil || !strings.Contains(string(data), "doc/1") || strings.Contains(string(data), "doc/2") {
		t.Errorf("%q, %v", data, err)
	}
}

// A document in another language has no word of the question, and is found by what it means.
func TestFoundByMeaningAlone(t *testing.T) {
	l := library(t, append([]knowledge.Document{
		book(0, "Treiber Neustart Knoten Wartung"), book(1, "the riser was loose"), book(2, "postgres replica lags"), book(3, "coffee machine broken"),
	}, crowd(40)...)...)
	words := []string{"driver reboot during maintenance of the node"}
	if hits, err := l.Search(t.Context(), words, 3); err != nil || len(hits) != 0 {
		t.Fatalf("by words: %+v, %v", hits, err)
	}
	meanings, _ := learn(t, l, &model{name: "m", dimensions: always(256)})
	hits, err := meanings.Search(t.Context(), words, 3)
	if err != nil || len(hits) != 1 || hits[0].URL != "0" || hits[0].Quote != "Treiber Neustart Knoten Wartung" {
		t.Errorf("%+v, %v", hits, err)
	}
	if hits, err := meanings.Search(t.Context(), []string{"zxqv wibble frotz"}, 3); err != nil || len(hits) != 0 {
		t.Errorf("%+v, %v", hits, err)
	}
}

func crowd(n int) (out []knowledge.Document) {
	for i := range n {
		out = append(out, book(100+i, fmt.Sprintf("ticket about invoice a%d%d and badge b%d", i, i*7, i*13)))
	}
	return out
}
