package fixes

import (
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
)

// The order of the contract, each line worse than the one before it for the one
// reason that is named.
func TestOrderOfFixes(t *testing.T) {
	good := func(change func(*candidate)) *candidate {
		f := &candidate{keeps: true, cost: evict.NoVictims, fix: diagnosis.Fix{Kind: diagnosis.EvictPods, Automatic: true, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Cost: diagnosis.Cost{Nodes: []string{"a"}, Minutes: 1}}}
		change(f)
		return f
	}
	list := []struct {
		reason string
		fix    *candidate
	}{
		{"best", good(func(*candidate) {})},
		{"later in the catalogue", good(func(f *candidate) { f.fix.Kind = diagnosis.RepartitionGPU })},
		{"more minutes", good(func(f *candidate) { f.fix.Cost.Minutes = 2 })},
		{"more nodes", good(func(f *candidate) { f.fix.Cost.Nodes = []string{"a", "b"} })},
		{"fewer devices than asked", good(func(f *candidate) { f.less = 1 })},
		{"more work lost", good(func(f *candidate) { f.cost = evict.Cost{Lost: time.Minute} })},
		{"more victims", good(func(f *candidate) { f.cost = evict.Cost{Number: 1} })},
		{"higher sum", good(func(f *candidate) { f.cost = evict.Cost{Sum: 1} })},
		{"higher priority", good(func(f *candidate) { f.cost = evict.Cost{Highest: 1} })},
		{"work that goes on", good(func(f *candidate) { f.cost = evict.Cost{Working: 1} })},
		{"beyond a budget", good(func(f *candidate) { f.cost = evict.Cost{Beyond: 1} })},
		{"by hand", good(func(f *candidate) { f.fix.Automatic = false })},
		{"gives something else", good(func(f *candidate) { f.keeps = false })},
		{"waits", good(func(f *candidate) { f.fix.Proof.Verdict = diagnosis.Waits })},
		{"unproven", good(func(f *candidate) { f.fix.Proof.Verdict = diagnosis.Unproven })},
		{"refuted", good(func(f *candidate) { f.fix.Proof.Verdict = diagnosis.Refuted })},
	}
	for i := range list {
		for j := range list {
			if got := list[i].fix.order(list[j].fix, true); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q against %q: %d", list[i].reason, list[j].reason, got)
			}
		}
	}
}
