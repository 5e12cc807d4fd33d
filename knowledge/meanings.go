package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// vectorsFile lies beside the index.
	vectorsFile = "vectors"
	// learnAtOnce is how many texts are sent in a request, savedEach how many vectors are
	// made before they are written: that many are made again after a crash.
	learnAtOnce, savedEach = 64, 2048
	// flatMost is how many vectors a search goes through one by one, in some 30 ms. Of more
	// documents, only what the words find is ranked by meaning, too.
	flatMost = 250_000
	// fused is the k of reciprocal rank fusion, as its authors have it (Cormack, Clarke
	// and Büttcher, SIGIR 2009).
	fused = 60
	// standsOut is by how much more than the furthest of as many by chance a document has to
	// differ from the crowd to be told for its meaning alone, in standard deviations. So no
	// model needs a threshold of its own.
	standsOut = 1
)

// Embedder says what texts mean, as vectors.
type Embedder interface {
	// Model names it: vectors of different models cannot be compared.
	Model() string
	// Embed is a vector for each text, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Meanings are the vectors of a library's documents, by which it is searched beside its
// words. It may be used by many goroutines; one learns at a time.
type Meanings struct {
	library  *Library
	embedder Embedder

	learning sync.Mutex
	odd      atomic.Bool // a vector came that is of another length than those that are kept

	mu      sync.RWMutex // held to change vectors, and to read them by who does not
	vectors *vectors
}

// Meanings opens what the documents mean to a model: nothing yet, where it was never asked.
func (l *Library) Meanings(e Embedder) (*Meanings, error) {
	v, err := readVectors(filepath.Join(l.dir, vectorsFile), e.Model())
	if err != nil {
		return nil, err
	}
	return &Meanings{library: l, embedder: e, vectors: v}, nil
}

// Learned is what a pass of Learn did.
type Learned struct {
	Made, Same, Gone int
	Skipped          map[string]int // by the reason
}

// Learn asks for the vectors of documents that are new or were edited, and drops those of
// documents that are gone. A document that gets none is found by its words. What was learnt
// before an error stays; another call goes on. Where the model answers with vectors of another
// length also for what it was asked before, all is learnt again in that length.
func (m *Meanings) Learn(ctx context.Context) (Learned, error) {
	m.learning.Lock()
	defer m.learning.Unlock()
	done, err := m.pass(ctx)
	if err != nil || !m.odd.Swap(false) {
		return done, err
	}
	if another, err := m.another(ctx); err != nil || !another {
		return done, err
	}
	m.mu.Lock()
	m.vectors = newVectors(m.embedder.Model())
	m.mu.Unlock()
	return m.pass(ctx)
}

// another says whether the model answers otherwise by now: with a vector of another length for a
// document of which one is kept.
func (m *Meanings) another(ctx context.Context) (bool, error) {
	if len(m.vectors.ids) == 0 {
		return false, nil
	}
	d, err := m.library.candidate(m.vectors.ids[0])
	if err != nil || d.id == "" {
		return false, err
	}
	made, err := m.embedder.Embed(ctx, []string{d.doc.says()})
	return err == nil && len(made[0]) != m.vectors.head.Dimensions, err
}

// pass goes through all documents once.
func (m *Meanings) pass(ctx context.Context) (Learned, error) {
	done := Learned{Skipped: map[string]int{}}
	there, unsaved := map[string]bool{}, 0
	var todo []toLearn
	send := func() error {
		if len(todo) == 0 {
			return nil
		}
		err := m.learn(ctx, todo, &done)
		unsaved += len(todo)
		todo = todo[:0]
		if err == nil && unsaved >= savedEach {
			unsaved, err = 0, m.save()
		}
		return err
	}
	err := m.texts(ctx, func(t toLearn) error {
		there[t.id] = true
		if n, known := m.vectors.at[t.id]; known && m.vectors.marks[n] == t.mark {
			done.Same++
			return nil
		}
		if todo = append(todo, t); len(todo) < learnAtOnce {
			return nil
		}
		return send()
	})
	if err == nil {
		err = send()
	}
	if err == nil {
		m.mu.Lock()
		done.Gone = m.vectors.keep(func(id string) bool { return there[id] })
		m.mu.Unlock()
	}
	if saved := m.save(); err == nil {
		err = saved
	}
	return done, err
}

func (m *Meanings) save() error { return m.vectors.write(filepath.Join(m.library.dir, vectorsFile)) }

// toLearn is what a document says to the model.
type toLearn struct {
	id, says string
	mark     uint64
}

func (m *Meanings) texts(ctx context.Context, each func(toLearn) error) error {
	for _, s := range sources {
		ids, err := m.library.having(ctx, fieldOf, s)
		if err != nil {
			return fmt.Errorf("list the documents of %s: %w", s, err)
		}
		for _, id := range ids {
			stored, err := m.library.stored(id)
			if err != nil {
				return err
			}
			d, err := read(stored)
			if err != nil {
				return err
			}
			t := toLearn{id: id, says: d.says()}
			h := fnv.New64a()
			h.Write([]byte(t.says)) //nolint:errcheck // a hash takes everything
			t.mark = h.Sum64()
			if err := each(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// says is what of a document is sent to a model.
func (d Document) says() string { return d.Title + "\n" + d.Text }

func (m *Meanings) learn(ctx context.Context, todo []toLearn, done *Learned) error {
	says := make([]string, len(todo))
	for n, t := range todo {
		says[n] = t.says
	}
	made, err := m.embedder.Embed(ctx, says)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vectors.agree(made)
	for n, t := range todo {
		if !m.vectors.set(t.id, t.mark, made[n]) {
			m.odd.Store(true)
			done.Skipped[fmt.Sprintf("the model answered with %d dimensions, the others have %d", len(made[n]), m.vectors.head.Dimensions)]++
			continue
		}
		done.Made++
	}
	return nil
}

// WordsAloneError says why hits are those of the words alone.
type WordsAloneError struct{ Err error }

func (e *WordsAloneError) Error() string { return "search by meaning: " + e.Err.Error() }

func (e *WordsAloneError) Unwrap() error { return e.Err }

// Search finds by words and by meaning, fused by reciprocal rank. Where the model cannot be
// asked, the hits are those of the words, and a *WordsAloneError says why.
func (m *Meanings) Search(ctx context.Context, phrases []string, limit int) ([]Hit, error) {
	return m.SearchFor(ctx, nil, phrases, limit)
}

// SearchFor is Search among the documents that somebody may be told of.
func (m *Meanings) SearchFor(ctx context.Context, may Allowed, phrases []string, limit int) ([]Hit, error) {
	asked, why := m.ask(ctx, phrases)
	if asked == nil || limit <= 0 {
		hits, err := m.library.SearchFor(ctx, may, phrases, limit)
		if err == nil && why != nil {
			err = &WordsAloneError{why}
		}
		return hits, err
	}
	l := m.library
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, errors.New("search: the index is closed")
	}
	q, found, err := l.find(ctx, may, phrases, max(pool, limit))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	m.mu.RLock()
	ranks := m.rank(asked, found)
	m.mu.RUnlock()
	found, err = m.fuse(may, found, ranks)
	if err != nil {
		return nil, err
	}
	return q.hits(found[:min(limit, len(found))]), nil
}

// Questioner is an Embedder that asks for a question otherwise than for documents.
type Questioner interface {
	Question(ctx context.Context, text string) ([]float32, error)
}

// ask is what a question means; nil where there is nothing to compare it with.
func (m *Meanings) ask(ctx context.Context, phrases []string) (asked []float32, err error) {
	m.mu.RLock()
	documents, dimensions := len(m.vectors.ids), m.vectors.head.Dimensions
	m.mu.RUnlock()
	text := strings.Join(phrases, "\n")
	if documents == 0 || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if q, ok := m.embedder.(Questioner); ok {
		asked, err = q.Question(ctx, text)
	} else {
		var made [][]float32
		if made, err = m.embedder.Embed(ctx, []string{text}); err == nil {
			asked = made[0]
		}
	}
	if err == nil && len(asked) != dimensions {
		m.odd.Store(true)
		return nil, fmt.Errorf("the model answered with %d dimensions, the library's have %d: if it is another model by now, remove %s and import again", len(asked), dimensions, filepath.Join(m.library.dir, vectorsFile))
	}
	return asked, err
}

// ranked is a document's place by meaning.
type ranked struct {
	id    string
	out   bool // it stands out from the others
	alike float32
}

// rank orders by meaning: all documents, or, of too many, those that the words found.
func (m *Meanings) rank(asked []float32, found []candidate) []ranked {
	v, out := m.vectors, []ranked{}
	if len(asked) != v.head.Dimensions {
		return nil // they are being learnt again
	}
	like := v.likeness(asked)
	if len(v.ids) > flatMost {
		for _, c := range found {
			if n, known := v.at[c.id]; known {
				out = append(out, ranked{id: c.id, alike: like(n)})
			}
		}
	} else {
		alike := make([]float32, len(v.ids))
		for n := range alike {
			alike[n] = like(n)
		}
		mean, deviation := spread(alike)
		least := mean + deviation*(math.Sqrt(2*math.Log(float64(len(alike))))+standsOut)
		for n, x := range alike {
			out = append(out, ranked{v.ids[n], float64(x) > least, x})
		}
	}
	slices.SortFunc(out, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.alike, a.alike), cmp.Compare(a.id, b.id)) })
	return out[:min(len(out), pool)]
}

func spread(of []float32) (mean, deviation float64) {
	for _, x := range of {
		mean += float64(x) / float64(len(of))
	}
	for _, x := range of {
		deviation += (float64(x) - mean) * (float64(x) - mean) / float64(len(of))
	}
	return mean, math.Sqrt(deviation)
}

// fuse adds the reciprocals of both ranks. Who is not like what was asked by its words has
// to stand out by its meaning.
func (m *Meanings) fuse(may Allowed, byWords []candidate, byMeaning []ranked) ([]candidate, error) {
	out := slices.Clone(byWords)
	at := map[string]int{}
	for n := range out {
		at[out[n].id] = n
		out[n].score = 1 / float64(fused+n+1)
	}
	for rank, r := range byMeaning {
		n, known := at[r.id]
		if !known && !r.out {
			continue
		}
		if !known {
			c, err := m.library.candidate(r.id)
			if err != nil {
				return nil, err
			}
			if c.id == "" || may != nil && !may(c.doc) {
				continue // it was taken out since, or is not for who asks
			}
			n = len(out)
			out = append(out, c)
		}
		out[n].score += 1 / float64(fused+rank+1)
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	return out, nil
}

// candidate is a document that no word of the question need be in; of no id where it is gone.
func (i *Index) candidate(id string) (candidate, error) {
	stored, err := i.stored(id)
	if err != nil || stored == "" {
		return candidate{}, err
	}
	d, err := read(stored)
	return candidate{id: id, doc: d}, err
}

// forgetVectors takes away what forgotten documents mean.
func (l *Library) forgetVectors(ids []string) error {
	file := filepath.Join(l.dir, vectorsFile)
	v, err := readVectors(file, "")
	if err != nil || v.keep(func(id string) bool { return !slices.Contains(ids, id) }) == 0 {
		return err
	}
	return v.write(file)
}
