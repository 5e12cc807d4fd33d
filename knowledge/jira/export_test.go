package jira

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
)

const (
	adf = `{"type":"doc","version":1,"content":[
		{"type":"heading","attrs":{"level":2},"content":[{"type":"text","text":"What"}]},
		{"type":"paragraph","content":[{"type":"mention","attrs":{"id":"5b10","text":"@Ada Lovelace"}},{"type":"text","text":" asks for nvidia.com/mig-3g.20gb"},{"type":"hardBreak"},{"type":"text","text":"since noon"}]},
		{"type":"bulletList","content":[{"type":"listItem","content":[{"type":"paragraph","content":[{"type":"inlineCard","attrs":{"url":"https://wiki/mig"}}]}]}]},
		{"type":"codeBlock","content":[{"type":"text","text":"kubectl get pod"}]}]}`
	wiki  = `"h2. What\r\n[~ada] asks for *nvidia.com/mig-2g.10gb*, see [the wiki|https://wiki/mig] !shot.png!\r\n{code:bash}\nkubectl get pod\n{code}\n* first\n|a|b|"`
	cloud = `{"key":"GPU-118","self":"https://acme.atlassian.net/rest/api/3/issue/10118","fields":{"summary":"3g pod pending","description":` + adf + `,
		"created":"2026-10-20T12:30:00.000+0200","reporter":{"accountId":"5b10","displayName":"Ada Lovelace","emailAddress":"ada@example.com"},"project":{"key":"GPU","name":"GPU platform"},
		"resolution":{"name":"Done"},"status":{"statusCategory":{"key":"done"}},
		"comment":{"comments":[{"body":` + adf + `},{"body":{"type":"doc","content":[{"type":"paragraph","content":[{"type":"text","text":"Moved the pod at 5."}]}]}},{"body":"only us","visibility":{"type":"role","value":"Admins"}}]}}}`
	center = `{"key":"OPS-7","self":"https://jira.acme.example/jira/rest/api/2/issue/7","fields":{"summary":"2g slice","description":` + wiki + `,"created":"2026-10-20T12:30:00.000+0000","reporter":{"name":"ada","key":"JIRAUSER1"},"resolution":{"name":"Won't Fix"},"comment":{"comments":[]}}}`
)

func TestPlain(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"adf":      {adf, "What\n\n@5b10 asks for nvidia.com/mig-3g.20gb\nsince noon\n\nhttps://wiki/mig\n\nkubectl get pod"},
		"wiki":     {wiki, "What\n\n@ada asks for nvidia.com/mig-2g.10gb, see the wiki \n\nkubectl get pod\n\nfirst\n a b"},
		"none":     {"null", ""},
		"absent":   {"", ""},
		"a number": {"7", ""},
		"deep":     {strings.Repeat(`{"type":"panel","content":[`, 200) + `{"type":"text","text":"x"}` + strings.Repeat("]}", 200), ""},
	} {
		if diff := cmp.Diff(c.want, plain(json.RawMessage(c.body))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func load(t *testing.T, l *knowledge.Library, content string, set func(*Export)) (knowledge.Import, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Export{File: file}
	set(e)
	return l.Import(t.Context(), e, "jira", "export.json", time.Time{})
}

func library(t *testing.T) *knowledge.Library {
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
	return l
}

func first(t *testing.T, l *knowledge.Library, words string) knowledge.Hit {
	t.Helper()
	hits, err := l.Search(t.Context(), []string{words}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) == 0 {
		return knowledge.Hit{}
	}
	hits[0].Score = 0
	return hits[0]
}

func TestExport(t *testing.T) {
	l := library(t)
	huge, err := json.Marshal(strings.Repeat("x", 5<<20))
	if err != nil {
		t.Fatal(err)
	}
	page := fmt.Sprintf(`{"expand":"names","startAt":0,"issues":[%s,%s,
		{"key":"GPU-1"},{"fields":{"summary":"nameless"}},{"key":"GPU-2","fields":{"summary":"secret","security":{"name":"Staff"}}},
		{"key":"GPU-3","fields":{"summary":["odd"]}},{"key":"GPU-4","self":"https://api.atlassian.com/ex/jira/1/rest/api/3/issue/4","fields":{"summary":"Xid 79","description":%s}}],"total":7}`, cloud, center, huge)
	done, err := load(t, l, page, func(*Export) {})
	if err != nil {
		t.Fatal(err)
	}
	want := knowledge.Import{Source: "jira", From: "export.json", Added: 3, Skipped: map[string]int{
		"a comment that not everybody may read":                                                      1,
		"a ticket without fields: Cloud's search gives ids alone unless it is asked for fields=*all": 1,
		"a ticket without a key":                                                                     1,
		"a ticket with a security level: not everybody may read it":                                  1,
		"a ticket of another shape than Jira's":                                                      1,
		"a description or comment of more than 64 KiB":                                               1,
	}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	wantHit := knowledge.Hit{Source: "jira", Title: "GPU-118 3g pod pending", URL: "https://acme.atlassian.net/browse/GPU-118", Who: "5b10", Where: "GPU platform", Part: "GPU",
		At: time.Date(2026, 10, 20, 10, 30, 0, 0, time.UTC), Quote: "@5b10 asks for nvidia.com/mig-3g.20gb\nsince noon"}
	if diff := cmp.Diff(wantHit, first(t, l, "nvidia.com/mig-3g.20gb")); diff != "" {
		t.Error(diff)
	}
	if h := first(t, l, "2g slice"); h.URL != "https://jira.acme.example/jira/browse/OPS-7" || h.Who != "JIRAUSER1" || h.Where != "OPS" {
		t.Errorf("got %+v", h)
	}
	if h := first(t, l, "Xid 79"); h.Title != "GPU-4 Xid 79" || h.URL != "" {
		t.Errorf("got %+v", h)
	}
	for _, hidden := range []string{"Lovelace", "secret", "only us"} {
		if h := first(t, l, hidden); h.Title != "" {
			t.Errorf("%s was found: %+v", hidden, h)
		}
	}
}

func TestResolved(t *testing.T) {
	for name, want := range map[string]bool{`{"key":"A-1","fields":{"summary":"x","resolution":{"name":"Fixed"}}}`: true, center: false, `{"key":"A-1","fields":{"summary":"x","status":{"statusCategory":{"key":"done"}}}}`: true, `{"key":"A-1","fields":{"summary":"x"}}`: false} {
		var k ticket
		if err := json.Unmarshal([]byte(name), &k); err != nil {
			t.Fatal(err)
		}
		d, why := document("https://x/", k, nil)
		if d.Resolved != want || why != "" || d.URL != "https://x/browse/"+k.Key {
			t.Errorf("%s: %+v %s", k.Key, d, why)
		}
	}
}

func TestComplete(t *testing.T) {
	one := `{"key":"GPU-1","fields":{"summary":"Xid 79"}}`
	two := `{"key":"GPU-2","fields":{"summary":"Xid 13"}}`
	other := `{"key":"OPS-1","fields":{"summary":"Xid 31"}}`
	for name, c := range map[string]struct {
		second   string
		complete bool
		left     int
	}{
		"a search":          {"[" + one + "]", false, 3},
		"a whole project":   {"[" + one + "]", true, 2},
		"cut off":           {`{"issues":[` + one, true, 3},
		"cut inside":        {`{"issues":[{"key":"GPU-1","fie`, true, 3},
		"without a ticket":  {`{"issues":[]}`, true, 3},
		"no JSON":           {"<html>", true, 3},
		"a string":          {`"hello"`, true, 3},
		"issues is a count": {`{"issues":7}`, true, 3},
		"an empty file":     {"", true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := library(t)
			if done, err := load(t, l, `{"issues":[`+one+`]}`+"\n"+`{"issues":[`+two+","+other+`]}`, func(*Export) {}); err != nil || done.Added != 3 {
				t.Fatalf("pages, one after the other: %+v, %v", done, err)
			}
			done, err := load(t, l, c.second, func(e *Export) { e.Complete = c.complete })
			if l.Len() != c.left || strings.HasPrefix(name, "a ") && name != "a string" != (err == nil) {
				t.Errorf("%d left, %+v, %v", l.Len(), done, err)
			}
		})
	}
}
