package knowledge_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embed"
	"github.com/unpend/unpend/knowledge/embedtest"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/knowledge/slack"
)

const set = "../testdata/knowledge"

// shown is how many hits a finding has room for.
const shown = 3

type thread struct {
	ID, In, At string
	Say        []string
}

type ticket struct{ Key, At, Title, Text, End string }

type query struct {
	Ask  []string
	From string         // the scenario whose diagnosis asks
	Want map[string]int // by id: 3 the same matter and how it ended, 2 the same matter, 1 of use
}

// load reads every file of the set that a pattern names.
func load[T any](t testing.TB, pattern string) (out []T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(set, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	for _, name := range names {
		var more []T
		data, err := os.ReadFile(name)
		if err == nil {
			err = yaml.UnmarshalStrict(data, &more)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, more...)
	}
	return out
}

// asked are the queries of the set, with what the diagnoses of scenarios ask.
func asked(t testing.TB) []query {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(set, "asked.yaml"))
	words := map[string][]string{}
	if err == nil {
		err = yaml.UnmarshalStrict(data, &words)
	}
	if err != nil {
		t.Fatal(err)
	}
	queries := load[query](t, "queries.yaml")
	for n, q := range queries {
		if q.From != "" {
			queries[n].Ask = words[q.From]
		}
		if len(queries[n].Ask) == 0 {
			t.Fatalf("%s asks nothing", q.From)
		}
	}
	return queries
}

// history imports the set as a team would, from an export of each tool; the id of a
// document is in its address.
func history(t testing.TB) (*knowledge.Library, map[string]string) {
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
	ids := map[string]string{}
	threads, tickets := load[thread](t, "threads*.yaml"), load[ticket](t, "tickets*.yaml")
	e, err := slack.Open(workspace(t, threads, ids))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Workspace = "acme"
	file := project(t, tickets, ids)
	for _, s := range []knowledge.Source{e, &jira.Export{File: file, Site: "https://acme.atlassian.net"}} {
		if done, err := l.Import(t.Context(), s, "slack", "set", time.Time{}); err != nil || len(done.Skipped) > 0 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if l.Len() != len(threads)+len(tickets) {
		t.Fatalf("%d documents of %d threads and %d tickets", l.Len(), len(threads), len(tickets))
	}
	return l, ids
}

func workspace(t testing.TB, threads []thread, ids map[string]string) string {
	t.Helper()
	type message struct {
		Type     string `json:"type"`
		User     string `json:"user"`
		Text     string `json:"text"`
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts,omitempty"`
	}
	channels, files := []map[string]string{}, map[string][]message{}
	for n, th := range threads {
		at, err := time.Parse(time.DateOnly, th.At)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(channels, func(c map[string]string) bool { return c["name"] == th.In }) {
			channels = append(channels, map[string]string{"id": fmt.Sprintf("C%d", len(channels)), "name": th.In})
		}
		root := fmt.Sprintf("%d.%06d", at.Unix(), n)
		ids[fmt.Sprintf("p%d%06d", at.Unix(), n)] = th.ID
		for k, text := range th.Say {
			m := message{"message", fmt.Sprintf("U%d", k), text, fmt.Sprintf("%d.%06d", at.Unix()+int64(60*k), n), root}
			files[th.In+"/"+th.At+".json"] = append(files[th.In+"/"+th.At+".json"], m)
		}
	}
	name := filepath.Join(t.TempDir(), "export.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	put := func(name string, v any) {
		w, err := z.Create(name)
		if err == nil {
			err = json.NewEncoder(w).Encode(v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("channels.json", channels)
	for name, day := range files {
		put(name, day)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func project(t testing.TB, tickets []ticket, ids map[string]string) string {
	t.Helper()
	issues := []any{}
	for _, k := range tickets {
		ids[k.Key] = k.Key
		issues = append(issues, map[string]any{"key": k.Key, "fields": map[string]any{"summary": k.Title, "description": k.Text, "created": k.At + "T09:00:00.000+0000",
			"resolution": map[string]string{"name": "Done"}, "comment": map[string]any{"comments": []any{map[string]string{"body": k.End}}}}})
	}
	data, err := json.Marshal(map[string]any{"issues": issues})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// figures are the quality of the answers to a set of queries.
type figures struct {
	recall, ndcg float64 // means over queries that somebody has answered before
	precise      float64 // of all that is shown, what is of use
	silent       float64 // of the queries that nobody has answered, those with no answer
	rightSilence float64 // of the silences, those that were right
}

type search func(ctx context.Context, phrases []string, limit int) ([]knowledge.Hit, error)

func measure(t testing.TB, find search, ids map[string]string, queries []query) (f figures) {
	t.Helper()
	miss := func(format string, of ...any) {
		if testing.Verbose() {
			t.Logf(format, of...)
		}
	}
	answerable, good, told, silences, unanswerable, right := 0, 0, 0, 0, 0, 0
	for _, q := range queries {
		hits, err := find(t.Context(), q.Ask, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, ids[h.URL[strings.LastIndexByte(h.URL, '/')+1:]])
		}
		for _, id := range got[:min(shown, len(got))] {
			told++
			if q.Want[id] > 0 {
				good++
			}
		}
		if len(got) == 0 {
			silences++
		}
		if len(q.Want) == 0 {
			unanswerable++
			if len(got) == 0 {
				right++
			} else {
				miss("%.70v: %v, want nothing", q.Ask, got)
			}
			continue
		}
		answerable++
		r := recall(got, q.Want)
		f.recall += r
		f.ndcg += ndcg(got, q.Want)
		if r < 1 {
			miss("%.70v: %v, want %v", q.Ask, got, q.Want)
		}
	}
	f.recall /= float64(answerable)
	f.ndcg /= float64(answerable)
	f.precise = float64(good) / float64(max(1, told))
	f.silent = float64(right) / float64(unanswerable)
	f.rightSilence = float64(right) / float64(max(1, silences))
	return f
}

// recall is the share of the right documents among the first three, of the three that
// there is room for.
func recall(got []string, want map[string]int) float64 {
	found := 0
	for _, id := range got[:min(shown, len(got))] {
		if want[id] > 0 {
			found++
		}
	}
	return float64(found) / float64(min(shown, len(want)))
}

// ndcg is the discounted gain of the first ten, of what could be had.
func ndcg(got []string, want map[string]int) float64 {
	gain, best := 0.0, 0.0
	discount := func(rank int) float64 { return 1 / math.Log2(float64(rank)+2) }
	for rank, id := range got[:min(10, len(got))] {
		gain += float64(want[id]) * discount(rank)
	}
	grades := []int{}
	for _, g := range want {
		grades = append(grades, g)
	}
	slices.Sort(grades)
	slices.Reverse(grades)
	for rank, g := range grades[:min(10, len(grades))] {
		best += float64(g) * discount(rank)
	}
	return gain / best
}

// hybrid is the library with what its documents mean to an endpoint that is no model (see
// embedtest): what its figures show is the fusion, not what a real model would bring.
func hybrid(t testing.TB, l *knowledge.Library) search {
	t.Helper()
	c, err := embed.New(embed.Options{URL: embedtest.New(t).URL, Model: "hashed"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.Meanings(c)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := m.Learn(t.Context()); err != nil || done.Made != l.Len() {
		t.Fatalf("%+v, %v", done, err)
	}
	return m.Search
}

// seed parts the questions into those by which the thresholds of relevance.go were chosen, and
// those that judge them.
const seed = 15

// halves are the tuned and the held out half of the questions, each with its share of those that
// nobody has answered.
func halves(queries []query) (tuned, held []query) {
	r := rand.New(rand.NewPCG(seed, seed))
	for _, answered := range []bool{true, false} {
		var of []query
		for _, q := range queries {
			if len(q.Want) > 0 == answered {
				of = append(of, q)
			}
		}
		r.Shuffle(len(of), func(a, b int) { of[a], of[b] = of[b], of[a] })
		tuned, held = append(tuned, of[:len(of)/2]...), append(held, of[len(of)/2:]...)
	}
	return tuned, held
}

func TestRelevanceSet(t *testing.T) {
	l, ids := history(t)
	queries := asked(t)
	both := hybrid(t, l)
	tuned, held := halves(queries)
	t.Logf("%d documents, %d queries, %d of them held out", l.Len(), len(queries), len(held))
	if len(tuned)+len(held) != len(queries) {
		t.Fatalf("%d and %d are not %d", len(tuned), len(held), len(queries))
	}
	// A little below what was measured: who makes it worse is told.
	for _, tc := range []struct {
		name  string
		find  search
		of    []query
		least figures
	}{
		{"words", l.Search, queries, figures{recall: 0.69, ndcg: 0.67, precise: 0.62, silent: 0.96, rightSilence: 0.9}},
		{"both", both, queries, figures{recall: 0.68, ndcg: 0.69, precise: 0.6, silent: 0.92, rightSilence: 0.93}},
		{"words, tuned half", l.Search, tuned, figures{}},
		{"words, held out", l.Search, held, figures{recall: 0.7, ndcg: 0.69, precise: 0.68, silent: 0.96, rightSilence: 0.9}},
		{"both, held out", both, held, figures{recall: 0.69, ndcg: 0.71, precise: 0.64, silent: 0.84, rightSilence: 0.9}},
	} {
		got := measure(t, tc.find, ids, tc.of)
		t.Logf("%s: %+v", tc.name, got)
		if least := tc.least; got.recall < least.recall || got.ndcg < least.ndcg || got.precise < least.precise || got.silent < least.silent || got.rightSilence < least.rightSilence {
			t.Errorf("%s: got %+v, want %+v at least", tc.name, got, least)
		}
	}
}

// BenchmarkRelevance prints what the set measures, by words alone and fused with meaning.
func BenchmarkRelevance(b *testing.B) {
	l, ids := history(b)
	queries := asked(b)
	both := hybrid(b, l)
	_, held := halves(queries)
	for _, tc := range []struct {
		name string
		find search
		of   []query
	}{{"words", l.Search, queries}, {"words+meaning", both, queries}, {"words/held-out", l.Search, held}, {"words+meaning/held-out", both, held}} {
		b.Run(tc.name, func(b *testing.B) {
			var f figures
			for b.Loop() {
				f = measure(b, tc.find, ids, tc.of)
			}
			b.ReportMetric(f.recall, "recall@3")
			b.ReportMetric(f.ndcg, "nDCG@10")
			b.ReportMetric(f.precise, "precision")
			b.ReportMetric(f.silent, "silence-recall")
			b.ReportMetric(f.rightSilence, "silence-precision")
		})
	}
}
