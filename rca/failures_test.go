package rca

import (
	"testing"

	"github.com/unpend/unpend/knowledge"
)

// Of equal fixes the one that failed less often comes first.
func TestFailuresCount(t *testing.T) {
	outcome := func(cause CauseID, kind FixKind, runs bool) knowledge.Outcome {
		return knowledge.Outcome{Cause: string(cause), Fix: string(kind), Runs: runs}
	}
	past := []knowledge.Outcome{outcome(MIGFull, EvictPods, false), outcome(MIGFull, EvictPods, true), outcome(MIGFull, EvictPods, false),
		outcome(MIGFull, ChangeRequest, true), outcome(NodeCordoned, EvictPods, false)}
	c := newFinder(&Case{}, past, nil)
	for kind, want := range map[FixKind]int{EvictPods: 66, ChangeRequest: 0, Wait: 0} {
		if got := c.failures(MIGFull, kind); got != want {
			t.Errorf("%s failed in %d %%, want %d", kind, got, want)
		}
	}
	often, seldom := &candidate{failures: 66}, &candidate{failures: 10}
	if often.order(seldom, true) <= 0 || seldom.order(often, true) >= 0 {
		t.Error("what failed more often comes first")
	}
}
