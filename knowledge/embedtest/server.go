// Package embedtest is an OpenAI-shaped embeddings endpoint for tests. Its vectors are
// hashed words and runs of letters, with a small table of words of other languages: no
// model, but repeatable, and it knows that a Knoten is a node.
package embedtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// Server is the endpoint. What is set before a request changes its answers.
type Server struct {
	URL string

	t        testing.TB
	mu       sync.Mutex
	Requests []Request
	// Dimensions of the next vectors (256).
	Dimensions int
	// Answer replaces an answer; it returns false where the usual one is to be given.
	Answer func(w http.ResponseWriter, r Request) bool
}

// Request is what was asked.
type Request struct {
	Model         string   `json:"model"`
	Input         []string `json:"input"`
	Authorization string   `json:"-"`
}

// New starts an endpoint that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Dimensions: 256, t: t}
	srv := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(srv.Close)
	s.URL = srv.URL + "/v1"
	return s
}

// Asked are the requests so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" {
		http.NotFound(w, r)
		return
	}
	q, err := documented(r)
	if err != nil {
		s.t.Errorf("OpenAI does not document that request: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.Requests = append(s.Requests, q)
	dimensions, answer := s.Dimensions, s.Answer
	s.mu.Unlock()
	if answer != nil && answer(w, q) {
		return
	}
	type row struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	data := []row{}
	for n, text := range slices.Backward(q.Input) { // no endpoint promises their order
		data = append(data, row{"embedding", n, Vector(text, dimensions)})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": q.Model, "data": data}) //nolint:errcheck // the caller has gone
}

// mostInputs are taken at once.
const mostInputs = 2048

// documented is what is asked, if that is a request for embeddings as OpenAI has it:
// https://platform.openai.com/docs/api-reference/embeddings/create
func documented(r *http.Request) (Request, error) {
	var body struct {
		Request
		Format     string `json:"encoding_format"`
		Dimensions int    `json:"dimensions"`
		User       string `json:"user"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return body.Request, err
	}
	q := body.Request
	q.Authorization = r.Header.Get("Authorization")
	switch {
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return q, fmt.Errorf("its type is %q", r.Header.Get("Content-Type"))
	case q.Model == "":
		return q, errors.New("it names no model")
	case len(q.Input) == 0 || len(q.Input) > mostInputs || slices.Contains(q.Input, ""):
		return q, fmt.Errorf("it has %d texts, or an empty one", len(q.Input))
	case body.Format != "" && body.Format != "float":
		return q, fmt.Errorf("it wants %q, and reads numbers", body.Format)
	}
	return q, nil
}

// Vector is what a text means to it.
func Vector(text string, dimensions int) []float32 {
	out := make([]float32, dimensions)
	add := func(s string, weight float64) {
		h := fnv.New32a()
		h.Write([]byte(s)) //nolint:errcheck // a hash takes everything
		n := h.Sum32()
		if n&1 == 1 {
			weight = -weight
		}
		out[int(n>>1)%dimensions] += float32(weight)
	}
	count := map[string]int{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if means := dictionary[w]; means != "" {
			w = means
		}
		if !everyday[w] {
			count[w]++
		}
	}
	for w, n := range count {
		weight := 1 + math.Log(float64(n))
		add(w, weight)
		runes := []rune(w)
		for i := 0; i+4 <= len(runes); i++ {
			add("#"+string(runes[i:i+4]), weight/4)
		}
	}
	out[0] += 0.001 // of no text either all is zero
	return out
}
