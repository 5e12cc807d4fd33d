package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/web"
)

// evil would end an attribute, a text or a comment, and begin something of its own.
const evil = `"'><script>alert(1)</script><img src=x onerror=alert(1)></title></noscript></svg>--><a href="javascript:alert(1)" style=x>&#34;` + "\n`${x}"

// called puts a name behind every text that a value holds.
func called(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + name)
	case reflect.Pointer:
		if !v.IsNil() {
			called(v.Elem(), name)
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for _, field := range v.Fields() {
				called(field, name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			called(v.Index(i), name)
		}
	case reflect.Map:
		all := reflect.MakeMap(v.Type())
		for _, key := range v.MapKeys() {
			k := reflect.New(key.Type()).Elem()
			k.Set(key)
			called(k, name)
			all.SetMapIndex(k, v.MapIndex(key))
		}
		v.Set(all)
	}
}

// named is an incident in which everything has a name, but for what decides which parts a page
// has.
func named(t *testing.T, id, name string) notice.Proposal {
	p := scenario(t, "all-1g")
	p.Finding.Knowledge = []knowledge.Hit{{Source: "doc", Title: "t", URL: "https://wiki.example.com/", Quote: "q", At: noon}, {Source: "doc", Title: "t", URL: "javascript:alert(1)//"}}
	p.Finding.Unread = []string{"u"}
	p.Wording = &diagnosis.Wording{Model: "m", Sentences: []diagnosis.Sentence{{Says: "s", From: []string{"f"}}}}
	p.Finding.Fixes[0].Conflicts = []string{"c", "d"}
	was := p.Finding.Fixes[0]
	p.Plans = []notice.Notice{underWay(p)}
	p.Plans[0].Reason, p.Plans[0].AuditHead = "r", "a"
	what, progress := p.Plans[0].What, p.Plans[0].Progress
	called(reflect.ValueOf(&p).Elem(), name)
	p.Finding.Knowledge[0].URL = "https://wiki.example.com/" + strings.ReplaceAll(name, "\n", "")
	p.Incident, p.Finding.Incident, p.Finding.Fixes[0].Plan, p.Finding.Fixes[0].Class, p.Finding.Fixes[0].Held = id, id, was.Plan, was.Class, ""
	p.Plans[0].What, p.Plans[0].Progress = what, progress
	return p
}

// skeleton is what a page is made of: its elements with the names of their attributes. What is
// loaded, opened or sent to is of the page's own, or on the web; scripts are files.
func skeleton(t *testing.T, page, body string) (parts []string, text string) {
	t.Helper()
	for in := html.NewTokenizer(strings.NewReader(body)); ; {
		kind := in.Next()
		token := in.Token()
		switch kind {
		case html.ErrorToken:
			return parts, text
		case html.TextToken:
			if text += token.Data; len(parts) > 0 && strings.HasPrefix(parts[len(parts)-1], "script") && strings.TrimSpace(token.Data) != "" {
				t.Errorf("%s: a script has the text %q", page, token.Data)
			}
			continue
		case html.EndTagToken:
			parts = append(parts, "/"+token.Data)
			continue
		}
		names := []string{token.Data}
		for _, a := range token.Attr {
			names = append(names, a.Key)
			if slices.Contains([]string{"href", "src", "action", "hx-get", "sse-connect"}, a.Key) {
				to, err := url.Parse(a.Val)
				if err != nil || to.Scheme != "" && to.Scheme != "https" || to.Host != "" && to.Host != "wiki.example.com" || strings.HasPrefix(a.Val, "//") {
					t.Errorf("%s: %s leads to %q", page, token.Data, a.Val)
				}
			}
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s: %s has %s=%q", page, token.Data, a.Key, a.Val)
			}
		}
		parts = append(parts, strings.Join(names, " "))
	}
}

// visited are all the pages of a site where everything has a name.
func visited(t *testing.T, name string) map[string]answer {
	id := "gpu-" + strings.ReplaceAll(name, "\n", "")
	d := &desk{trial: web.Trial{Steps: []string{"s" + name}, Persons: "p" + name}}
	s := newSite(t, func(o *web.Options) { o.Desk, o.Cluster = d, "c"+name })
	s.api.change(func() {
		ada := s.api.people[adas]
		ada.user += name
		s.api.people[adas] = ada
	})
	p := named(t, id, name)
	decidable := p
	decidable.Plans, decidable.Incident = nil, "d"+id
	s.tell(t, p, decidable)
	geometries(t, s)
	s.SetGeometry(&nodeprobe.NodeGeometry{ObjectMeta: metav1.ObjectMeta{Name: "n" + name}, Report: nodeprobe.Report{ObservedAt: metav1.NewTime(noon), GPUs: []nodeprobe.GPU{
		{Product: "p" + name, Healthy: true, Holders: []nodeprobe.Holder{{Namespace: "ns" + name, Pod: "pod" + name}}}}}})
	b := s.browser(t).signIn(t, adas)
	fix := "/incidents/" + url.PathEscape(decidable.Incident) + "/fixes/1"
	all := map[string]answer{
		"the list":     b.get(t, "/"),
		"a filter":     b.get(t, "/?namespace="+url.QueryEscape("default"+name)),
		"an incident":  b.get(t, "/incidents/"+url.PathEscape(id)),
		"an open one":  b.get(t, "/incidents/"+url.PathEscape(decidable.Incident)),
		"consent":      b.get(t, fix+"?plan="+p.Finding.Fixes[0].Plan),
		"the map":      b.get(t, "/cluster"),
		"nothing":      b.get(t, "/nothing/"+url.PathEscape(name)),
		"signing in":   b.get(t, "/sign-in?next="+url.QueryEscape("/"+name)),
		"not a choice": b.get(t, fix+"?plan="+url.QueryEscape(name)),
	}
	d.trial.Held = "h" + name
	all["held back"] = b.get(t, fix+"?plan="+p.Finding.Fixes[0].Plan)
	d.waits = "w" + name
	all["recorded"] = b.post(t, fix, url.Values{"plan": {p.Finding.Fixes[0].Plan}, "decision": {"approve"}})
	d.err = fmt.Errorf("%w: %s", plan.ErrStale, "e"+name)
	all["stale"] = b.post(t, fix, url.Values{"plan": {p.Finding.Fixes[0].Plan}, "decision": {"approve"}})
	return all
}

// S7: whatever things in a cluster are called, it is shown as text: no page has another
// element or attribute for it.
func TestS7NamesAreText(t *testing.T) {
	harmless, hostile := visited(t, "x"), visited(t, evil)
	for _, page := range slices.Sorted(maps.Keys(harmless)) {
		want, _ := skeleton(t, page, harmless[page].body)
		got, text := skeleton(t, page, hostile[page].body)
		if diff := cmp.Diff(want, got); diff != "" || hostile[page].StatusCode != harmless[page].StatusCode {
			t.Errorf("%s: %s, with harmless names %s; made of other parts: %s\n%s", page, hostile[page].Status, harmless[page].Status, diff, hostile[page].body)
		}
		if !strings.Contains(text, "<img src=x onerror=alert(1)>") || len(got) < 20 {
			t.Errorf("%s does not show the names: %q", page, text)
		}
	}
	for page, want := range map[string]int{"the list": 200, "an incident": 200, "consent": 200, "held back": 200, "the map": 200, "recorded": 202, "stale": 409} {
		if got := hostile[page].StatusCode; got != want {
			t.Errorf("%s: %d, so that it was not looked at", page, got)
		}
	}
}

// A document that was seen before is a link where it is on the web, and nothing else is.
func TestOnlyTheWebIsLinked(t *testing.T) {
	s := newSite(t)
	p := waiting("gpu-aaaaaaaaaa", "team-a", "team-b")
	good := []string{"https://wiki.example.com/a?b=c&d=e#f", "http://10.0.0.1:8080/x"}
	for _, address := range append(slices.Clone(good), "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "\x01javascript:alert(1)", "javascript://wiki.example.com/%0aalert(1)", "data:text/html,<script>alert(1)</script>",
		"vbscript:x", "file:///etc/passwd", "blob:https://wiki.example.com/1", "https:wiki.example.com", "//wiki.example.com/", "/\\wiki.example.com", "/sign-out", "docs/a.md", "", "https://") {
		p.Finding.Knowledge = append(p.Finding.Knowledge, knowledge.Hit{Source: "doc", Title: "about " + address, URL: address})
	}
	s.tell(t, p)
	got := s.browser(t).signIn(t, adas).get(t, "/incidents/gpu-aaaaaaaaaa")
	_, known, found := strings.Cut(got.body, `<h2 id="known">`)
	if got.StatusCode != http.StatusOK || !found || strings.Count(known, "about ") != len(p.Finding.Knowledge) {
		t.Fatalf("%s\n%s", got.Status, got.body)
	}
	var links []string
	for in := html.NewTokenizer(strings.NewReader(known)); in.Next() != html.ErrorToken; {
		for _, a := range in.Token().Attr {
			if a.Key == "href" {
				links = append(links, a.Val)
			}
		}
	}
	if !slices.Equal(links, good) {
		t.Errorf("linked is %q", links)
	}
}
