package incident

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// Kubernetes' own kinds go by their names, others by their API's too: a Job of another's is
// another kind, and never looked up as one of Kubernetes'.
func TestKindOf(t *testing.T) {
	for want, gk := range map[string]schema.GroupKind{"Pod": {Kind: "Pod"}, "Deployment": {Group: "apps", Kind: "Deployment"}, "Job": {Group: "batch", Kind: "Job"}, "Job.batch.volcano.sh": {Group: "batch.volcano.sh", Kind: "Job"},
		"StatefulSet.apps.kruise.io": {Group: "apps.kruise.io", Kind: "StatefulSet"}, "RayCluster.ray.io": {Group: "ray.io", Kind: "RayCluster"}} {
		if got := KindOf(gk); got != want {
			t.Errorf("%v: %s, want %s", gk, got, want)
		}
	}
	if !OwnKind("CronJob") || OwnKind("Job.batch.volcano.sh") || OwnKind("Pod") {
		t.Error("which are Kubernetes' own")
	}
	by := func(apiVersion string) []metav1.OwnerReference {
		o := incidenttest.Owned("Job", "j")
		o[0].APIVersion = apiVersion
		return o
	}
	known := incidenttest.Owners{"Job/ml/j": incidenttest.Owned("CronJob", "nightly")}
	for apiVersion, want := range map[string]Ref{"batch/v1": {"CronJob", "ml", "nightly"}, "": {"CronJob", "ml", "nightly"}, "batch.volcano.sh/v1alpha1": {"Job.batch.volcano.sh", "ml", "j"}} {
		pod := incidenttest.WaitingPod("p", "nvidia.com/gpu", by(apiVersion))
		if got := Topmost(pod, known.Find); got != want {
			t.Errorf("%s: %v, want %v", apiVersion, got, want)
		}
		if _, lost := Walk(pod, known.Find); lost == nil {
			t.Errorf("%s: the walk ends at what was not found, and does not say so", apiVersion)
		}
	}
	if _, lost := Walk(incidenttest.WaitingPod("p", "nvidia.com/gpu", nil), known.Find); lost != nil {
		t.Errorf("a bare pod has lost %v", lost)
	}
}
