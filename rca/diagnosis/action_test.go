package diagnosis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What an action writes to, which pods it evicts and which node it closes is read from the action
// alone: the guard-rails go by that.
func TestActions(t *testing.T) {
	node, pod := Target{Kind: "Node", Name: "gpu-1"}, Target{Kind: "Pod", Namespace: "ml", Name: "web"}
	layouts := Target{Kind: "ConfigMap", Namespace: "gpu-operator", Name: "mig"}
	for _, tc := range []struct {
		action          Action
		kinds           []string
		targets, evicts []Target
		closes          bool
	}{
		{Action{Verb: VerbEvict, Target: pod}, []string{"Pod"}, []Target{pod}, []Target{pod}, false},
		{Action{Verb: VerbCordon, Target: node}, []string{"Node"}, []Target{node}, nil, true},
		{Action{Verb: VerbUncordon, Target: node}, []string{"Node"}, []Target{node}, nil, false},
		{Action{Verb: VerbPatch, Target: pod}, []string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ResourceQuota", "Pod"}, []Target{pod}, nil, false},
		{Action{Verb: VerbRecreate, Target: pod}, []string{"Job", "Pod"}, []Target{pod}, nil, false},
		{Action{Verb: VerbRelayout, Target: node, Relayout: &Relayout{}}, []string{"Node"}, []Target{node}, nil, true},
		{Action{Verb: VerbRelayout, Target: node, Relayout: &Relayout{Victims: []Target{pod}, ConfigMap: &layouts}}, []string{"Node"}, []Target{pod, node, layouts}, []Target{pod}, true},
		{Action{Verb: "burn", Target: node}, nil, []Target{node}, nil, false},
	} {
		a := &tc.action
		if diff := cmp.Diff([]any{tc.kinds, tc.targets, tc.evicts, tc.closes}, []any{a.Kinds(), a.Targets(), a.Evicts(), a.Closes()}); diff != "" {
			t.Errorf("%s: %s", a.Verb, diff)
		}
	}
	if diff := cmp.Diff([]string{"cordon", "evict", "patch", "recreate", "relayout", "uncordon"}, Verbs()); diff != "" {
		t.Error(diff)
	}
}
