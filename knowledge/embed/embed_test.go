package embed_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge/embed"
	"github.com/unpend/unpend/knowledge/embedtest"
)

func client(t *testing.T, url, key string) *embed.Client {
	t.Helper()
	c, err := embed.New(embed.Options{URL: url, Model: "small", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The endpoint answers in another order than it was asked: each vector comes with its text.
func TestVectorsComeWithTheirTexts(t *testing.T) {
	s := embedtest.New(t)
	texts := []string{"a cordoned node", "quota", "slices", strings.Repeat("é", 5000)}
	got, err := client(t, s.URL, "k3y").Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	texts[3] = strings.Repeat("é", 1800)
	want := [][]float32{}
	for _, text := range texts {
		want = append(want, embedtest.Vector(text, 256))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]embedtest.Request{{Model: "small", Input: texts, Authorization: "Bearer k3y"}}, s.Asked()); diff != "" {
		t.Error(diff)
	}
	if _, err := client(t, s.URL, "").Embed(t.Context(), []string{"x"}); err != nil || s.Asked()[1].Authorization != "" {
		t.Errorf("%v, %+v", err, s.Asked()[1])
	}
}

// An answer that is not right is not used in part.
func TestWrongAnswers(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"one is missing":  {`{"data":[{"index":0,"embedding":[1]}]}`, "the answer has 1 of 2 texts"},
		"one twice":       {`{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]}`, "the answer has text 1 twice"},
		"of another":      {`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`, "the answer has text 2, 2 were sent"},
		"below":           {`{"data":[{"index":-1,"embedding":[1]}]}`, "the answer has text -1"},
		"empty":           {`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]}]}`, "the vector of text 0 is empty"},
		"zero":            {`{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":[1,0]}]}`, "all zero"},
		"too large":       {`{"data":[{"index":0,"embedding":[3e38,3e38]},{"index":1,"embedding":[1,1e400]}]}`, "embeddings"},
		"no JSON":         {`<html>`, "ask small for embeddings"},
		"nothing":         {`{}`, "the answer has 0 of 2 texts"},
		"an error inside": {`{"error":{"message":"no such model"}}`, "0 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := embedtest.New(t)
			s.Answer = func(w http.ResponseWriter, _ embedtest.Request) bool {
				fmt.Fprint(w, c.body)
				return true
			}
			got, err := client(t, s.URL, "").Embed(t.Context(), []string{"a", "b"})
			if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Errorf("%v, %v; want %q", got, err, c.want)
			}
		})
	}
}

// A busy endpoint is asked again when it says so, three times in all, and not where it
// wants an hour.
func TestBusyEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		after    string
		busy     int
		code     int
		requests int
		fails    bool
	}{
		"comes back":  {"0", 2, http.StatusTooManyRequests, 3, false},
		"unavailable": {"0", 1, http.StatusServiceUnavailable, 2, false},
		"stays busy":  {"0", 9, http.StatusTooManyRequests, 3, true},
		"in an hour":  {"3600", 9, http.StatusTooManyRequests, 1, true},
		"broken":      {"0", 9, http.StatusInternalServerError, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := embedtest.New(t), 0
			s.Answer = func(w http.ResponseWriter, _ embedtest.Request) bool {
				if n++; n > c.busy {
					return false
				}
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.code)
				return true
			}
			_, err := client(t, s.URL, "").Embed(t.Context(), []string{"a"})
			asked := s.Asked()
			if len(asked) != c.requests || (err != nil) != c.fails {
				t.Errorf("%d requests, %v", len(asked), err)
			}
			if slices.ContainsFunc(asked, func(r embedtest.Request) bool { return !slices.Equal(r.Input, []string{"a"}) }) {
				t.Errorf("a request was not whole: %+v", asked)
			}
		})
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	for _, o := range []embed.Options{{}, {URL: "models.example/v1", Model: "m"}, {URL: "ftp://models.example", Model: "m"}, {URL: "https://models.example/v1"}, {URL: "http://%zz", Model: "m"}} {
		if _, err := embed.New(o); err == nil || !strings.HasPrefix(err.Error(), "embeddings: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
