package library

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embed"
	"github.com/unpend/unpend/remediate/outbound"
)

// Embeddings is the model that says what documents mean; none by default: words find
// alone.
type Embeddings struct {
	// URL of a server that speaks OpenAI's embeddings, up to and with /v1. All that is read, and
	// what findings ask for, is sent there.
	URL string `json:"url"`
	// Model as the server calls it.
	Model string `json:"model"`
	// KeyFile holds the key that the server takes; without it none is sent.
	KeyFile string `json:"keyFile"`
}

func (c Embeddings) given() bool { return c != Embeddings{} }

const (
	// learnAnswers is how long an answer about documents may take, learnAnswer how large it may be:
	// 64 vectors of 4,096 numbers are some 6 MB.
	learnAnswers, learnAnswer = time.Minute, 32 << 20
	// questionWaits is how long a finding waits for what it means.
	questionWaits = 2 * time.Second
	// restsFor is how long a model is left alone that failed.
	restsFor = time.Minute
	// learnEvery is how often it is looked for documents that are new.
	learnEvery = 5 * time.Minute
	// remembered questions are not asked again: the same incident is diagnosed many times.
	remembered = 500
)

// meaning finds by what documents mean beside their words. What fails is counted, and words
// find alone.
type meaning struct {
	*Library
	of      *knowledge.Meanings
	vectors *prometheus.CounterVec
	failed  *prometheus.CounterVec
}

// embedder asks the model; nil where none is configured.
func (l *Library) embedder() (*embed.Client, error) {
	c := l.Config.Embeddings
	if !c.given() {
		return nil, nil
	}
	key := ""
	var err error
	if c.KeyFile != "" {
		if key, err = secrets.Read("knowledge.embeddings.keyFile", c.KeyFile); err != nil {
			return nil, err
		}
		if key == "" {
			return nil, errors.New("knowledge.embeddings.keyFile: it holds no key")
		}
	}
	client, err := outbound.New(outbound.Options{Allow: l.Allow, Secrets: []string{key}, Timeout: learnAnswers, MaxAnswer: learnAnswer})
	if err != nil {
		return nil, err
	}
	if _, err := client.Parse("knowledge.embeddings.url", c.URL); err != nil {
		return nil, err
	}
	return embed.New(embed.Options{URL: c.URL, Model: c.Model, Key: key, HTTP: client.HTTP()})
}

// newMeaning is nil where no model is configured.
func (l *Library) newMeaning() (*meaning, error) {
	e, err := l.embedder()
	if err != nil || e == nil {
		return nil, err
	}
	m := &meaning{Library: l,
		vectors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_vectors_total", Help: "Documents whose meaning was asked for: made, or left out by the reason; words find those."}, []string{"what"}),
		failed:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_knowledge_embeddings_failures_total", Help: "Times that the embeddings could not be asked, for documents (learn) or for a finding (search); words find alone then."}, []string{"for"})}
	for _, c := range []prometheus.Collector{m.vectors, m.failed} {
		if err := l.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	m.of, err = l.kept.Meanings(&hasty{Client: e, now: l.Now, known: map[string][]float32{}})
	return m, err
}

// search finds by both, or by words.
func (m *meaning) search(ctx context.Context, may knowledge.Allowed, phrases []string, n int) ([]knowledge.Hit, error) {
	hits, err := m.of.SearchFor(ctx, may, phrases, n)
	if _, words := errors.AsType[*knowledge.WordsAloneError](err); words && ctx.Err() == nil {
		m.failed.WithLabelValues("search").Inc()
		return hits, nil
	}
	return hits, err
}

// learn asks what documents mean that are new, until ctx ends.
func (m *meaning) learn(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-m.full:
	}
	before := ""
	tick := time.NewTicker(learnEvery)
	defer tick.Stop()
	for {
		before = m.pass(ctx, before)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// pass learns once, and says in the log what failed, where that is another failure than before.
func (m *meaning) pass(ctx context.Context, before string) string {
	done, err := m.of.Learn(ctx)
	m.vectors.WithLabelValues("made").Add(float64(done.Made))
	for why, n := range done.Skipped {
		m.vectors.WithLabelValues(why).Add(float64(n))
	}
	if err == nil || ctx.Err() != nil {
		return ""
	}
	m.failed.WithLabelValues("learn").Inc()
	if err.Error() != before {
		m.Logger.WarnContext(ctx, "what documents mean is not learnt, and words find them", "error", err)
	}
	return err.Error()
}

// hasty asks for questions briefly, each once, and leaves a model alone that has failed.
type hasty struct {
	*embed.Client
	now func() time.Time

	mu    sync.Mutex
	known map[string][]float32
	until time.Time // it rests
}

var errRests = errors.New("the model has just failed, and is left alone for a minute")

// Question implements knowledge.Questioner.
func (h *hasty) Question(ctx context.Context, text string) ([]float32, error) {
	h.mu.Lock()
	known, rests := h.known[text], h.now().Before(h.until)
	h.mu.Unlock()
	switch {
	case known != nil:
		return known, nil
	case rests:
		return nil, errRests
	}
	ctx, cancel := context.WithTimeout(ctx, questionWaits)
	defer cancel()
	made, err := h.Embed(ctx, []string{text})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.until = h.now().Add(restsFor)
		return nil, err
	}
	if len(h.known) >= remembered {
		clear(h.known)
	}
	h.known[text] = made[0]
	return made[0], nil
}
