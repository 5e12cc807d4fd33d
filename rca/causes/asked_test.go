package causes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
)

// What is asked by pods that do not exist yet stands in the Workload that Kueue made of what makes them, where that itself is
// not read.
func TestAskedByAWorkload(t *testing.T) {
	w := newWorld()
	w.gpuNode(l4("n1", 1))
	container := map[string]any{"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": "500"}}}
	set := map[string]any{"name": "job", "count": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
	of := object("ml", "jobset-w-1", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "spec": map[string]any{"queueName": "q", "podSets": []any{set}}})
	of.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "w", UID: "u", Controller: new(true)}})
	w.QueuedWorkloads = []*unstructured.Unstructured{of}
	c := w.open(t)
	want := diagnosis.That("sum(spec.podSets[name=job].template.spec.containers[*].resources.requests[cpu])", "", diagnosis.Is, "500").Of("Workload/ml/jobset-w-1")
	if got := c.itAsks("cpu"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What no rule explains has claims as well, where it is about an amount.
func TestUnsettledAmounts(t *testing.T) {
	w := newWorld()
	w.gpuNode(l4("n1", 1))
	w.gpuNode(l4("n2", 1)).Status.Capacity["nvidia.com/vcuda"] = *quantity(0) // a name that there once was
	w.pod("w", "", "nvidia.com/vcuda", 3000, by("other"))
	c := w.open(t)
	_, causes := c.Judge()
	for _, k := range causes {
		for _, e := range k.Evidence {
			if e.Fact != "NodeResourcesFit: Insufficient nvidia.com/vcuda" {
				continue
			}
			asks, free := diagnosis.That(diagnosis.Requests, "nvidia.com/vcuda", diagnosis.Is, "3k").Of("Pod/ml/w"), diagnosis.That(diagnosis.Free, "nvidia.com/vcuda", diagnosis.Is, "0").Of("Node/n1")
			if len(e.Claims) != 2 || e.Claims[0] != asks || e.Claims[1] != free {
				t.Errorf("claims %+v", e.Claims)
			}
			return
		}
	}
	t.Errorf("it is not told:\n%s", causesText(causes))
}

// That the default scheduler has a pod of HAMi's is said in the headline, and not that nobody answers.
func TestWhatIsNotGivenToHAMi(t *testing.T) {
	w := newWorld()
	w.gpuNode(l4("n1", 1))
	w.pod("w", "", "nvidia.com/gpumem", 3000)
	c := w.open(t)
	_, causes := c.Judge()
	if len(causes) == 0 || causes[0].ID != diagnosis.SchedulerMissing || c.Headline(causes[0].ID) != "HAMi's scheduler has to place it" {
		t.Errorf("%s: %s", causesText(causes), c.Headline(diagnosis.SchedulerMissing))
	}
}

// What HAMi counts by itself is told beside what Kubernetes' filters say of a pod that HAMi has; of one that is still to be
// made nobody says that the default scheduler has it.
func TestWhatHAMiCounts(t *testing.T) {
	w := newWorld()
	w.gpuNode(l4("n1", 1))
	w.pod("w", "", "nvidia.com/gpumem", 3000, by("hami-scheduler"))
	_, causes := w.open(t).Judge()
	const want = "the default scheduler's filters accept n1 now, but for nvidia.com/gpumem, which HAMi counts by itself; hami-scheduler decides by its own"
	if len(causes) != 1 || causes[0].Says != want {
		t.Errorf("%s\nwant %s", causesText(causes), want)
	}
}
