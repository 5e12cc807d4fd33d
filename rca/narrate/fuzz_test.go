package narrate

import (
	"regexp"
	"strings"
	"testing"
)

var digits = regexp.MustCompile(`[0-9]+`)

// Whatever a model says: what is let through leads nowhere, mentions nobody, and has no number
// that the evidence lacks.
func FuzzSentence(f *testing.F) {
	e := evidenceOf(found())
	for _, seed := range []string{"The nodes are not laid out with 2g.10gb.", "Fix 1 stops 3 pods.", "See https://evil.example", "@channel", "<!here>", "\u202e1\u0663", "It is 1e9, or 0x10.", "gpu-1/GPU 0: 2g.10gb's", "..5..", "\xff"} {
		f.Add(seed, "not laid out with 2g.10gb")
	}
	all := ""
	for _, i := range e.items {
		all += i.text + "\n"
	}
	f.Fuzz(func(t *testing.T, text, quote string) {
		kept, _ := e.check([]claim{{text, e.ids(), quote}})
		for _, s := range kept {
			if strings.ContainsAny(s.Says, "<>@`*[]\n\x1b\u202e") || strings.Contains(s.Says, "://") {
				t.Errorf("%q is let through", s.Says)
			}
			for _, n := range digits.FindAllString(text, -1) {
				if !strings.Contains(all, n) {
					t.Errorf("%q has %s, which nothing has", s.Says, n)
				}
			}
		}
	})
}
