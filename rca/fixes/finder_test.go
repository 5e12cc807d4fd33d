package fixes

import (
	"testing"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Of equal fixes the one that failed less often comes first.
func TestFailuresCount(t *testing.T) {
	outcome := func(cause diagnosis.CauseID, kind diagnosis.FixKind, runs bool) knowledge.Outcome {
		return knowledge.Outcome{Cause: string(cause), Fix: string(kind), Runs: runs}
	}
	past := []knowledge.Outcome{outcome(diagnosis.MIGFull, diagnosis.EvictPods, false), outcome(diagnosis.MIGFull, diagnosis.EvictPods, true), outcome(diagnosis.MIGFull, diagnosis.EvictPods, false),
		outcome(diagnosis.MIGFull, diagnosis.ChangeRequest, true), outcome(diagnosis.NodeCordoned, diagnosis.EvictPods, false)}
	c := New(&causes.Case{}, past, nil, nil)
	for kind, want := range map[diagnosis.FixKind]int{diagnosis.EvictPods: 66, diagnosis.ChangeRequest: 0, diagnosis.Wait: 0} {
		if got := c.failures(diagnosis.MIGFull, kind); got != want {
			t.Errorf("%s failed in %d %%, want %d", kind, got, want)
		}
	}
	often, seldom := &candidate{failures: 66}, &candidate{failures: 10}
	if often.order(seldom, true) <= 0 || seldom.order(often, true) >= 0 {
		t.Error("what failed more often comes first")
	}
}
