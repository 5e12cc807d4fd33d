package knowledge

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// day is midnight of a date; a misspelt one is the zero time, which no test wants.
func day(s string) time.Time {
	t, _ := time.Parse(time.DateOnly, s)
	return t
}

// history is a small team's: GPU incidents, and things that only share words
// with them.
var history = []Document{
	{ID: "layout", Source: "doc", Title: "A pod waits for a MIG slice nobody has laid out", URL: "runbooks/layout.md",
		Text: "Symptom: the scheduler says Insufficient nvidia.com/mig-2g.10gb though memory is free.\n\nCause MIGLayoutMismatch: the GPU is cut into 1g slices. Evicting a pod does not help, the freed slice stays 1g. Set the label nvidia.com/mig.config to all-balanced once nobody holds the GPU."},
	{ID: "fragmented", Source: "jira", Title: "GPU-118 3g pod pending, slices scattered", URL: "https://jira/GPU-118", At: day("2026-09-01"), Resolved: true,
		Text: "MIGFragmented on gpu-node-2: instances at 0, 1 and 5 were held, so nvidia.com/mig-3g.20gb had no legal start. We moved the inference pod at 5 and the layout was made again."},
	{ID: "xid79", Source: "slack", Title: "gpu-node-7 dropped off the bus", URL: "https://slack/1", At: day("2026-10-20"), Resolved: true,
		Text: "NVRM: Xid (PCI:0000:65:00): 79, pid=4711, GPU has fallen off the bus. Power-cycled the host, the riser was loose."},
	{ID: "xid48", Source: "slack", Title: "double bit ECC error", URL: "https://slack/2", At: day("2026-10-21"),
		Text: "Xid 48 on gpu-node-3, the GPU was marked unhealthy and the device plugin withdrew it. Drained and sent for repair."},
	{ID: "taint", Source: "doc", Title: "Reserved nodes", URL: "runbooks/reserved.md",
		Text: "Nodes of the research group carry the taint gpu=reserved:NoSchedule. Ask in the research channel before adding a toleration."},
	{ID: "quota", Source: "jira", Title: "GPU-90 quota used up by notebooks", URL: "https://jira/GPU-90", At: day("2026-03-02"), Resolved: true,
		Text: "QuotaExceeded in namespace ml: notebooks held requests.nvidia.com/gpu over the weekend. Culling was switched on."},
	{ID: "plugin", Source: "slack", Title: "node advertises no GPU after driver upgrade", URL: "https://slack/3", At: day("2026-08-08"),
		Text: "DevicePluginDown after driver 580.126.09: nvidia.com/gpu was at 0. Restarting the plugin's pod brought them back."},
	{ID: "cordon", Source: "slack", Title: "who cordoned gpu-node-1", URL: "https://slack/4", At: day("2026-10-01"),
		Text: "The node was cordoned for a firmware update and forgotten. Uncordoned, jobs started."},
	{ID: "pg", Source: "jira", Title: "DB-7 nightly backup failed", URL: "https://jira/DB-7", At: day("2026-10-22"), Resolved: true,
		Text: "The Postgres pod had no free disk on its node; the volume was full of WAL. Archiving was repaired and old segments were deleted."},
	{ID: "dns", Source: "slack", Title: "DNS timeouts", URL: "https://slack/5", At: day("2026-10-19"),
		Text: "Every pod on a node waits five seconds for a name, conntrack races. We put a cache on each node."},
	{ID: "cert", Source: "doc", Title: "Renewing certificates", URL: "runbooks/certs.md",
		Text: "The ingress certificate is renewed by hand. Log in to the node, run the script, restart the ingress pod."},
	{ID: "lunch", Source: "slack", Title: "Coffee machine", URL: "https://slack/6", At: day("2026-10-22"),
		Text: "The coffee machine on the third floor is out of order, use the one on the second."},
}

func open(t *testing.T, docs []Document) *Index {
	t.Helper()
	i, err := New(t.Context(), docs)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, i)
	return i
}

func closeAtEnd(t testing.TB, i *Index) {
	t.Helper()
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
}

func find(t *testing.T, i *Index, words ...string) []Hit {
	t.Helper()
	hits, err := i.Search(t.Context(), words, 5)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func urls(hits []Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, h.URL)
	}
	return out
}

func TestRelevance(t *testing.T) {
	i := open(t, history)
	for _, c := range []struct {
		name  string
		words []string
		first string
		never []string
	}{
		{"layout, as a diagnosis words it", []string{"MIGLayoutMismatch", "not laid out with 2g.10gb, though a legal position is unheld", "nvidia.com/mig-2g.10gb", "NVIDIA A100-SXM4-40GB"},
			"runbooks/layout.md", []string{"https://jira/DB-7", "https://slack/6", "runbooks/certs.md", "https://slack/5"}},
		{"fragmented", []string{"MIGFragmented", "enough slices are unheld on one GPU, but no legal start position is", "nvidia.com/mig-3g.20gb"},
			"https://jira/GPU-118", []string{"https://jira/DB-7", "https://slack/6"}},
		{"exact number beats general text", []string{"Xid 79", "GPU unhealthy, the device plugin withdrew it, drained"},
			"https://slack/1", []string{"https://slack/6"}},
		{"the other number", []string{"xid=48"}, "https://slack/2", []string{"https://slack/1"}},
		{"node name", []string{"gpu-node-1"}, "https://slack/4", []string{"https://slack/1", "https://slack/2", "https://jira/GPU-118"}},
		{"taint, by words alone", []string{"the node carries a taint the pod does not tolerate: reserved"}, "runbooks/reserved.md", []string{"https://slack/6"}},
		{"stemmed words", []string{"culled notebooks quotas"}, "https://jira/GPU-90", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := urls(find(t, i, c.words...))
			if len(got) == 0 || got[0] != c.first {
				t.Errorf("got %v, want %s first", got, c.first)
			}
			for _, never := range c.never {
				for _, u := range got {
					if u == never {
						t.Errorf("%s answers, though it is about something else: %v", never, got)
					}
				}
			}
		})
	}
}

func TestNoSimilarIncident(t *testing.T) {
	i := open(t, history)
	for _, words := range [][]string{
		nil, {""}, {"the", "of"},
		{"pod", "waits", "node"},
		{"DRAClaimMissing", "the ResourceClaim does not exist", "a pod waits for it on a node"},
		{"TopologySpreadConflict", "spread constraints leave no node for the pod", "example.com/fpga"},
		{"zxqv", "Ωμέγα", "🦄"},
	} {
		if hits := find(t, i, words...); len(hits) != 0 {
			t.Errorf("%q found %v", words, urls(hits))
		}
	}
	if hits := find(t, open(t, nil), "pod"); hits != nil {
		t.Errorf("an empty index found %v", hits)
	}
}

func TestWordsAreNeverSyntax(t *testing.T) {
	i := open(t, history)
	for _, word := range []string{`title:cordoned`, `+cordoned -firmware`, `"cordoned`, `cord*`, `/.*/`, `cordoned~2`, `text:>=a`, `(cordoned`, "cordoned\xff", strings.Repeat("cordoned ", 5000)} {
		hits := find(t, i, word)
		if want := strings.Contains(word, "cordoned"); (len(hits) > 0) != want {
			t.Errorf("%.30q found %v", word, urls(hits))
		}
	}
}

func TestRecentAndResolvedComeFirst(t *testing.T) {
	same := "MIGFull: no slice was left for the training job."
	doc := func(id, at string, resolved bool) Document {
		return Document{ID: id, Source: "slack", Title: "full", URL: id, Text: same, At: day(at), Resolved: resolved}
	}
	i := open(t, []Document{doc("old", "2026-01-01", false), doc("old-resolved", "2026-01-01", true),
		doc("new", "2026-10-20", false), doc("new-resolved", "2026-10-20", true), doc("weeks", "2026-09-29", false)})
	got := urls(find(t, i, "MIGFull"))
	if diff := cmp.Diff([]string{"new-resolved", "new", "weeks", "old-resolved", "old"}, got); diff != "" {
		t.Error(diff)
	}
	one, err := i.Search(t.Context(), []string{"MIGFull"}, 1)
	if err != nil || len(one) != 1 || one[0].URL != "new-resolved" {
		t.Errorf("limit 1: %v, %v", one, err)
	}
	if _, err := i.Search(t.Context(), []string{"MIGFull"}, 0); err == nil {
		t.Error("limit 0 was accepted")
	}
}

func TestQuote(t *testing.T) {
	i := open(t, history)
	hit := find(t, i, "MIGLayoutMismatch", "nvidia.com/mig.config")[0]
	want := "Cause MIGLayoutMismatch: the GPU is cut into 1g slices. Evicting a pod does not help, the freed slice stays 1g. Set the label nvidia.com/mig.config to all-balanced once nobody holds the GPU."
	if hit.Quote != want {
		t.Errorf("got %q", hit.Quote)
	}
	if hit.Source != "doc" || hit.Title != history[0].Title || !hit.At.IsZero() || hit.Score <= 0 {
		t.Errorf("got %+v", hit)
	}
}

func TestQuoteOfLongParagraphs(t *testing.T) {
	filler := strings.Repeat("Nothing of note was seen here. ", 30)
	for name, text := range map[string]string{
		"sentences":   filler + "Then Xid 79 was in the log. " + filler,
		"no spaces":   strings.Repeat("é", 2000) + "Xid 79",
		"wide":        strings.Repeat("漢字🦄 ", 400) + "Xid 79 " + strings.Repeat("漢字🦄 ", 400),
		"one newline": strings.Repeat("line without end\n", 100) + "Xid 79",
	} {
		t.Run(name, func(t *testing.T) {
			i := open(t, []Document{{ID: "a", Source: "doc", Title: "t", Text: text}})
			q := find(t, i, "Xid 79")[0].Quote
			if n := utf8.RuneCountInString(q); n > quoteRunes || n == 0 || !utf8.ValidString(q) || !strings.Contains(text, q) {
				t.Errorf("%d characters: %q", n, q)
			}
			if name == "sentences" && !strings.Contains(q, "Xid 79") {
				t.Errorf("the quote misses the sentence that matters: %q", q)
			}
		})
	}
}

func TestNewSkipsWhatCannotBeIndexed(t *testing.T) {
	i := open(t, []Document{
		{ID: "ok", Source: "doc", Title: "t", Text: "Xid 31"},
		{ID: "ok", Source: "doc", Title: "t", Text: "twice"},
		{ID: "empty", Source: "doc", Text: " \n"},
		{ID: "latin1", Source: "doc", Text: "caf\xe9"},
		{ID: "mail", Source: "email", Text: "x"},
		{Source: "doc", Title: "nameless", Text: "x"},
	})
	want := []string{
		"ok: another document has that id",
		"empty: it is empty",
		"latin1: it is not valid UTF-8",
		`mail: source "email" is none of slack, jira, doc, outcome`,
		"document nameless: it has no id",
	}
	if diff := cmp.Diff(want, i.Skipped()); diff != "" {
		t.Error(diff)
	}
	if i.Len() != 1 {
		t.Errorf("%d documents", i.Len())
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	i, err := New(t.Context(), history)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := i.Search(t.Context(), []string{"Xid 79"}, 1); err == nil {
		t.Error("a closed index answered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, history); err == nil {
		t.Error("a cancelled context was ignored")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind after an error: %v, %v", left, err)
	}
	goleak.VerifyNone(t, ignore)
}

// bleve falls back to tf-idf in silence where BM25 does not apply.
func TestRanksByBM25(t *testing.T) {
	if m := newMapping().ScoringModel; m != "bm25" {
		t.Fatalf("scoring model %q", m)
	}
	// Under BM25 the twentieth repetition of a word adds next to nothing; under
	// tf-idf it multiplies the score by the root of twenty.
	i := open(t, []Document{
		{ID: "once", Source: "doc", URL: "once", Title: "t", Text: "Xid 79 " + strings.Repeat("filler ", 19)},
		{ID: "often", Source: "doc", URL: "often", Title: "t", Text: "Xid 79 " + strings.Repeat("riser ", 19) + "filler"},
	})
	hits := find(t, i, "Xid 79", "filler")
	if len(hits) != 2 || hits[0].Score/hits[1].Score > 2.2 {
		t.Errorf("got %+v", hits)
	}
}

func BenchmarkSearch10k(b *testing.B) {
	docs := make([]Document, 10_000)
	for n := range docs {
		d := history[n%len(history)]
		d.ID, d.Text = fmt.Sprint(n), fmt.Sprintf("%s Seen on host-%d.", d.Text, n)
		docs[n] = d
	}
	i, err := New(b.Context(), docs)
	if err != nil {
		b.Fatal(err)
	}
	closeAtEnd(b, i)
	for b.Loop() {
		if _, err := i.Search(b.Context(), []string{"MIGLayoutMismatch", "nvidia.com/mig-2g.10gb", "layout GPU memory free"}, 3); err != nil {
			b.Fatal(err)
		}
	}
}
