package stack

import (
	"testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// An age is sure on a live cluster and in a dump that says when it was taken.
func TestAged(t *testing.T) {
	for want, states := range map[diagnosis.Certainty][]*cluster.State{diagnosis.Proven: {{Live: true}, {Taken: true}}, diagnosis.Likely: {{}}} {
		for _, st := range states {
			if got := (&Stack{w: &view.Cluster{State: st}}).aged(); got != want {
				t.Errorf("%s, want %s: %+v", got, want, st)
			}
		}
	}
}
