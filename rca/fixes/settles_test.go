package fixes

import (
	"testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// A label put right gives what was asked; less of it, another claim, or another model of GPU does not.
func TestWhatGivesWhatWasAsked(t *testing.T) {
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(*cluster.State) {})
	for name, k := range map[string]struct {
		change edit.Change
		keeps  bool
	}{
		"a label":       {edit.Change{Kind: diagnosis.FixSelector}, true},
		"another model": {edit.Change{Kind: diagnosis.FixSelector, Settles: true}, false},
		"less":          {edit.Change{Kind: diagnosis.ChangeRequest}, false},
		"what was left": {edit.Change{Kind: diagnosis.ChangeRequest, Adds: true}, true},
		"another claim": {edit.Change{Kind: diagnosis.FixClaim}, false},
	} {
		if f := c.candidate(c.Node("a"), []edit.Change{k.change}); f.keeps != k.keeps {
			t.Errorf("%s: %t", name, f.keeps)
		}
	}
}
