package outside

import (
	"testing"

	"github.com/unpend/unpend/watcher/incident"
)

// The pod that submits a RayJob is of a template of its own, and no other pod set is.
func TestWhereAPodSetsTemplateStands(t *testing.T) {
	for _, k := range []struct {
		kind, set string
		own       bool
	}{{"RayJob.ray.io", "submitter", true}, {"RayJob", "submitter", true}, {"RayJob.ray.io", "head", false}, {"PyTorchJob.kubeflow.org", "submitter", false}} {
		if got := templateOf(incident.Ref{Kind: k.kind}, k.set); got != "" != k.own {
			t.Errorf("%s %s: %q", k.kind, k.set, got)
		}
	}
}
