package knowledge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is private is told in its own channel; where a rule names it, there too; what a rule
// names is told nowhere else, private or not.
func TestAudience(t *testing.T) {
	a := Audience{Private: []string{"gpu-late"}, Rules: []Rule{
		{Of: []string{"gpu-oncall"}, To: []string{"slack/C7", "web"}},
		{Of: []string{"#gpu-oncall", "OPS"}, To: []string{"jira"}},
	}}
	docs := map[string]Document{
		"public":  {Source: "slack", Part: "C1", PartName: "#gpu-help"},
		"private": {Source: "slack", Part: "G1", PartName: "#ceo", Private: true},
		"oncall":  {Source: "slack", Part: "G2", PartName: "#gpu-oncall", Private: true},
		"late":    {Source: "slack", Part: "G3", PartName: "#GPU-late"},
		"ops":     {Source: "jira", Part: "OPS", PartName: "Operations"},
		"runbook": {Source: "doc", Part: "/runbooks", PartName: "runbooks"},
		"outcome": {Source: "outcome"},
	}
	always := []string{"outcome", "public", "runbook"}
	for place, more := range map[string][]string{
		"": nil, "web": {"oncall"}, "mcp": nil, "slack/C1": nil, "slack/C7": {"oncall"}, "slack/G1": {"private"}, "slack/G2": {"oncall"},
		"slack/G3": {"late"}, "jira/GPU": {"oncall", "ops"}, "jira/OPS": {"oncall", "ops"}, "jira": {"oncall", "ops"}, "webhook": nil, "slack": nil,
	} {
		for name, d := range docs {
			want := false
			for _, n := range append(always, more...) {
				want = want || n == name
			}
			if got := a.In(place)(d); got != want {
				t.Errorf("%s in %q: %v", name, place, got)
			}
			h := Hit{Source: d.Source, Part: d.Part, Where: d.PartName, Private: d.Private}
			if got := len(a.Quotes(place, []Hit{h})) == 1; got != want {
				t.Errorf("%s quoted in %q: %v", name, place, got)
			}
		}
	}
	for place, want := range map[string]bool{"": false, "web": true, "mcp": false, "slack/C1": true, "jira/GPU": true, "webhook": false} {
		if a.Opens(place) != want {
			t.Errorf("%q is opened: %v", place, !want)
		}
	}
}

// What may not be told takes no room from what may: however many documents of a private
// channel are better, the public ones are found, and none of the others.
func TestSearchForAReader(t *testing.T) {
	var docs []Document
	for n := range 3 * pool {
		docs = append(docs, Document{ID: fmt.Sprint("secret", n), Source: "slack", Part: "G1", PartName: "#ceo", Private: true, Resolved: true, URL: "secret", Title: "crowded on gpu-node-7", Text: "MIGFull: gpu-node-7 was crowded, its riser loose, layoffs follow"})
	}
	for n := range 15 * pool { // so that what is asked is rare
		docs = append(docs, Document{ID: fmt.Sprint("other", n), Source: "doc", URL: "other", Title: "lunch", Text: "soup today"})
	}
	docs = append(docs, Document{ID: "open", Source: "slack", Part: "C1", PartName: "#gpu-help", URL: "open", Title: "crowded", Text: "gpu-node-7 was crowded, its riser loose"})
	i := open(t, docs)
	for place, want := range map[string][]string{"": {"open"}, "slack/C1": {"open"}, "web": {"open"}, "slack/G1": {"secret", "secret"}} {
		hits, err := i.SearchFor(t.Context(), Audience{}.In(place), []string{"MIGFull gpu-node-7 was crowded, riser loose"}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, urls(hits)); diff != "" {
			t.Errorf("in %q: %s", place, diff)
		}
		for _, h := range hits {
			if h.Private != (h.URL == "secret") || h.Part == "" {
				t.Errorf("in %q: %+v", place, h)
			}
		}
	}
}
