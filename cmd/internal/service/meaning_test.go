package service

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embedtest"
)

// meant is a process that also finds by what documents mean, to an endpoint that has learnt all.
func meant(t *testing.T) (*Service, *embedtest.Server) {
	t.Helper()
	m, model := private(t), embedtest.New(t)
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("k3y\n"), 0o600))
	m.config.Knowledge.Embeddings = knowledgeEmbeddings{URL: model.URL, Model: "small", KeyFile: key}
	must(t, m.config.Knowledge.check(m.config.Slack))
	s, _ := m.replica(t, "", true)
	has(t, s, threads+tickets+1)
	if why := s.shelf.meaning.pass(t.Context(), ""); why != "" {
		t.Fatal(why)
	}
	return s, model
}

// Documents and questions are sent to the model that the configuration names, each question once;
// what may not be told is not told for its meaning either.
func TestFindsByMeaning(t *testing.T) {
	s, model := meant(t)
	learnt := len(model.Asked())
	if a := model.Asked()[0]; a.Model != "small" || a.Authorization != "Bearer k3y" {
		t.Errorf("asked %+v", a)
	}
	for range 3 {
		for place, want := range map[string]bool{"slack/C7": true, "slack/C1": false, everywhere: false} {
			hits, err := s.shelved(t.Context(), place, "Xid 888 on node-3, blame ada", 5)
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
	s, model := meant(t)
	now := time.Now()
	e, err := s.embedder()
	must(t, err)
	if s.shelf.meaning.of, err = s.shelf.library.Meanings(&hasty{Client: e, now: func() time.Time { return now }, known: map[string][]float32{}}); err != nil {
		t.Fatal(err)
	}
	must(t, ignore(s.shelf.meaning.of.Learn(t.Context())))
	failures := func() float64 { return testutil.ToFloat64(s.shelf.meaning.failed.WithLabelValues("search")) }
	finds := func(words string) {
		t.Helper()
		hits, err := s.shelved(t.Context(), everywhere, words, 1)
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
	now = now.Add(restsFor)
	model.Answer, model.Dimensions = nil, 12
	finds("Xid 9")
	if n := len(model.Asked()) - asked; n != 2 || failures() != 3 {
		t.Errorf("asked %d times, %g failures", n, failures())
	}
	model.Answer = func(http.ResponseWriter, embedtest.Request) bool { return true }
	if why := s.shelf.meaning.pass(t.Context(), ""); why != "" {
		t.Errorf("nothing is new, and it says %s", why)
	}
	must(t, s.hand(t.Context(), knowledge.Change{ID: "slack/C1/9", Document: &knowledge.Document{ID: "slack/C1/9", Source: "slack", Part: "C1", Title: "t", Text: "Xid 444"}}))
	knows(t, s, "Xid 444", 1)
	if why := s.shelf.meaning.pass(t.Context(), ""); why == "" || testutil.ToFloat64(s.shelf.meaning.failed.WithLabelValues("learn")) != 1 {
		t.Errorf("a failure is not told: %q", why)
	}
	finds("Xid 444")
}

func ignore(_ knowledge.Learned, err error) error { return err }

func TestEmbeddingsConfig(t *testing.T) {
	at := func(url string) *Service {
		s := &Service{}
		s.config.Knowledge.Embeddings = knowledgeEmbeddings{URL: url, Model: "m"}
		return s
	}
	if e, err := (&Service{}).embedder(); e != nil || err != nil {
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
	for want, c := range map[string]knowledgeConfig{
		"both have to be given": {Library: "l", Embeddings: knowledgeEmbeddings{URL: "https://a.example/v1"}},
		"nothing to learn":      {Folder: "f", Embeddings: knowledgeEmbeddings{URL: "https://a.example/v1", Model: "m"}},
	} {
		if err := c.check(slackConfig{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	must(t, knowledgeConfig{Library: "l", Embeddings: knowledgeEmbeddings{URL: "https://a.example/v1", Model: "m"}}.check(slackConfig{}))
}
