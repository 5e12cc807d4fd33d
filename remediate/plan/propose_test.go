package plan

import (
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Pods that must leave a node besides those on the GPU leave it under the cordon.
func TestOneCordonForAllEvictions(t *testing.T) {
	evict := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Name: "cpu"}, Relies: map[string]string{"node": "a"}}
	other := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Name: "elsewhere"}, Relies: map[string]string{"node": "b"}}
	saga := diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "a"}, Relayout: &diagnosis.Relayout{Victims: []diagnosis.Target{{Name: "gpu"}}}}
	open := diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: saga.Target}
	got := InOrder([]diagnosis.Action{open, evict, other, saga})
	if len(got) != 3 || got[0].Target.Name != "elsewhere" || len(got[1].Relayout.Victims) != 2 || got[1].Relayout.Victims[1].Name != "cpu" || got[2].Verb != diagnosis.VerbUncordon {
		t.Errorf("%+v", got)
	}
	if len(saga.Relayout.Victims) != 1 {
		t.Error("the plan itself was changed")
	}
}
