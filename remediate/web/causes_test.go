package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/unpend/unpend/remediate/notifytest/scenarios"
)

// Every cause is told on the page: its headline, each cause with its id, each fix, and a next
// command, of as many nodes as there are.
func TestGoldenCauses(t *testing.T) {
	s := newSite(t)
	b := s.browser(t).signIn(t, adas)
	var all strings.Builder
	for _, c := range scenarios.OneOfEach(t, "../..") {
		s.tell(t, c.Proposal)
		got := b.get(t, "/incidents/"+c.Incident)
		_, shown, _ := strings.Cut(got.body, `<div id="finding"`)
		shown, _, _ = strings.Cut(shown, "</main>")
		if got.StatusCode != http.StatusOK || shown == "" {
			t.Errorf("%s: %s\n%s", c.Name, got.Status, got.body)
		}
		wants := map[string]int{"<h1>": 1, "kubectl unpend show " + c.Incident: 1, "<article ": len(c.Finding.Fixes), `class="cause"`: len(c.Finding.Causes)}
		if c.Finding.Drawing != nil {
			wants[`<svg class="gpu"`] = 1 + min(1, len(c.Finding.Drawing.After))
		}
		for _, cause := range c.Finding.Causes {
			wants[">"+string(cause.ID)+"<"] = 1
		}
		for part, times := range wants {
			if n := strings.Count(shown, part); n < times || n > times && part[0] == '<' {
				t.Errorf("%s: %q stands there %d times, want %d", c.Name, part, n, times)
			}
		}
		fmt.Fprintf(&all, "<!-- %s -->\n<div id=\"finding\"%s", c.Name, shown)
	}
	golden(t, "causes", all.String())
}
