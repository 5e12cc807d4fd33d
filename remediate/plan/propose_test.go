package plan

import (
	"testing"

	"github.com/unpend/unpend/rca"
)

// Pods that must leave a node besides those on the GPU leave it under the cordon.
func TestOneCordonForAllEvictions(t *testing.T) {
	evict := rca.Action{Verb: rca.VerbEvict, Target: rca.Target{Kind: "Pod", Name: "cpu"}, Relies: map[string]string{"node": "a"}}
	other := rca.Action{Verb: rca.VerbEvict, Target: rca.Target{Kind: "Pod", Name: "elsewhere"}, Relies: map[string]string{"node": "b"}}
	saga := rca.Action{Verb: rca.VerbRelayout, Target: rca.Target{Kind: "Node", Name: "a"}, Relayout: &rca.Relayout{Victims: []rca.Target{{Name: "gpu"}}}}
	open := rca.Action{Verb: rca.VerbUncordon, Target: saga.Target}
	got := InOrder([]rca.Action{open, evict, other, saga})
	if len(got) != 3 || got[0].Target.Name != "elsewhere" || len(got[1].Relayout.Victims) != 2 || got[1].Relayout.Victims[1].Name != "cpu" || got[2].Verb != rca.VerbUncordon {
		t.Errorf("%+v", got)
	}
	if len(saga.Relayout.Victims) != 1 {
		t.Error("the plan itself was changed")
	}
}
