package library

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embedtest"
)

// meant is a process that also finds by what documents mean, and has what another one has read;
// an endpoint has told it all of them. It goes by a clock of its own.
func meant(t *testing.T) (*Library, *embedtest.Server, *clock) {
	t.Helper()
	m := private(t)
	reader, _ := m.replica(t, "", true)
	has(t, reader, threads+tickets+1)
	model := m.means(t)
	c := &clock{now: time.Now()}
	m.now = c.Now
	l, _ := m.replica(t, "", false)
	has(t, l, threads+tickets+1)
	if why := l.meaning.pass(t.Context(), ""); why != "" {
		t.Fatal(why)
	}
	return l, model, c
}

// means has the replicas that begin from now on ask an endpoint.
func (m *team) means(t *testing.T) *embedtest.Server {
	t.Helper()
	model, key := embedtest.New(t), filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("k3y\n"), 0o600))
	m.config.Embeddings = Embeddings{URL: model.URL, Model: "small", KeyFile: key}
	must(t, m.config.Check(told, ""))
	return model
}

// clock is moved by a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) moves(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Who runs learns what the documents mean that the bus had when it began.
func TestLearnsByItself(t *testing.T) {
	m := private(t)
	reader, _ := m.replica(t, "", true)
	has(t, reader, threads+tickets+1)
	model := m.means(t)
	m.replica(t, "", true)
	comes(t, func() (bool, string) {
		sent := 0
		for _, a := range model.Asked() {
			sent += len(a.Input)
		}
		return sent == threads+tickets+1, fmt.Sprintf("the model was sent %d documents, want %d", sent, threads+tickets+1)
	})
}

// Documents and questions are sent to the model that the configuration names, each question once;
// what may not be told is not told for its meaning either.
func TestFindsByMeaning(t *testing.T) {
	l, model, _ := meant(t)
	learnt := len(model.Asked())
	if a := model.Asked()[0]; a.Model != "small" || a.Authorization != "Bearer k3y" {
		t.Errorf("asked %+v", a)
	}
	for range 3 {
		for place, want := range map[string]bool{"slack/C7": true, "slack/C1": false, Everywhere: false} {
			hits, err := l.Find(t.Context(), place, "Xid 888 on node-3, blame ada", 5)
			must(t, err)
			told := false
			for _, h := range hits {
				told = told || strings.Contains(h.Quote, "blame ada")
			}
			if told != want {
				t.Errorf("in %q: %+v", place, hits)
			}
		}
	}
	if n := len(model.Asked()) - learnt; n != 1 {
		t.Errorf("one question was asked %d times", n)
	}
}

// Where the model fails, is slow, or answers with another dimension, words find alone, and it is
// counted; one that failed is left alone for a minute.
func TestWordsFindAlone(t *testing.T) {
	l, model, clock := meant(t)
	failures := func() float64 { return testutil.ToFloat64(l.meaning.failed.WithLabelValues("search")) }
	finds := func(words string) {
		t.Helper()
		hits, err := l.Find(t.Context(), Everywhere, words, 1)
		must(t, err)
		if len(hits) != 1 || !strings.Contains(hits[0].Quote, words) {
			t.Errorf("found %+v", hits)
		}
	}
	model.Answer = func(w http.ResponseWriter, _ embedtest.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	asked := len(model.Asked())
	finds("Xid 7")
	finds("Xid 8")
	if n := len(model.Asked()) - asked; n != 1 || failures() != 2 {
		t.Errorf("asked %d times, %g failures", n, failures())
	}
	clock.moves(restsFor)
	model.Answer, model.Dimensions = nil, 12
	finds("Xid 9")
	if n := len(model.Asked()) - asked; n != 2 || failures() != 3 {
		t.Errorf("asked %d times, %g failures", n, failures())
	}
	model.Dimensions = 256
	if why := l.meaning.pass(t.Context(), ""); why != "" { // it is the same model
		t.Error(why)
	}
	model.Answer = func(http.ResponseWriter, embedtest.Request) bool { return true }
	if why := l.meaning.pass(t.Context(), ""); why != "" {
		t.Errorf("nothing is new, and it says %s", why)
	}
	must(t, l.hand(t.Context(), knowledge.Change{ID: "slack/C1/9", Document: &knowledge.Document{ID: "slack/C1/9", Source: "slack", Part: "C1", Title: "t", Text: "Xid 444"}}))
	knows(t, l, "Xid 444", 1)
	if why := l.meaning.pass(t.Context(), ""); why == "" || testutil.ToFloat64(l.meaning.failed.WithLabelValues("learn")) != 1 {
		t.Errorf("a failure is not told: %q", why)
	}
	finds("Xid 444")
}

func TestEmbeddingsConfig(t *testing.T) {
	at := func(url string) *Library {
		return &Library{Options: Options{Config: Config{Embeddings: Embeddings{URL: url, Model: "m"}}}}
	}
	if e, err := (&Library{}).embedder(); e != nil || err != nil {
		t.Errorf("nothing is configured: %v, %v", e, err)
	}
	for _, url := range []string{"http://169.254.169.254/v1", "http://127.0.0.1:1/v1", "ftp://x"} {
		e, err := at(url).embedder()
		if err == nil {
			_, err = e.Embed(context.Background(), []string{"x"})
		}
		if err == nil {
			t.Errorf("%s is spoken to", url)
		}
	}
	for want, c := range map[string]Config{
		"both have to be given": {Library: "l", Embeddings: Embeddings{URL: "https://a.example/v1"}},
		"nothing to learn":      {Folder: "f", Embeddings: Embeddings{URL: "https://a.example/v1", Model: "m"}},
	} {
		if err := c.Check(nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	must(t, Config{Library: "l", Embeddings: Embeddings{URL: "https://a.example/v1", Model: "m"}}.Check(nil, ""))
}
