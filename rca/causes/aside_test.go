package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// What keeps a pod that has a node is told aside where others of its workload have none: it keeps
// these from no node.
func TestWhatIsTheMatterWithABoundPod(t *testing.T) {
	for name, others := range map[string]bool{"beside one without a node": true, "alone": false} {
		w := newWorld()
		w.publishes("n1", "a100", 1)
		w.class(ofDriver)
		w.claim("mine", 1, nil, "gpu-0")
		yes := true
		owned := func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job", Controller: &yes}}
		}
		w.pod("w", "n1", "", 0, claims("mine"), owned).Status = corev1.PodStatus{Phase: corev1.PodPending}
		w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "w"}, Reason: incident.FailedPrepare, Message: "no such device", Source: corev1.EventSource{Component: "kubelet"}})
		if others {
			w.pod("x", "", "", 0, claims("mine"), owned)
		}
		c := w.open(t)
		c.Judge()
		aside := false
		for _, r := range c.Own {
			aside = aside || r.ID == diagnosis.DRAPrepareFailed && r.Aside
		}
		if !c.IsOwn(diagnosis.DRAPrepareFailed) || aside != others || c.Everywhere[diagnosis.DRAPrepareFailed] == others {
			t.Errorf("%s: aside %v, everywhere %v", name, aside, c.Everywhere)
		}
	}
}

// A pod that the kubelet refused is judged as its next one will be, which has no node yet; one that
// waits is judged as it is.
func TestARefusedPodIsJudgedAsItsNext(t *testing.T) {
	statuses := []corev1.PodResourceClaimStatus{{Name: "gpu"}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Status: corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: statuses}}
	if unbound(p) != p {
		t.Error("one that waits is another")
	}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodFailed
	was := p.DeepCopy()
	want := &corev1.Pod{ObjectMeta: p.ObjectMeta, Status: corev1.PodStatus{ResourceClaimStatuses: statuses}}
	if got := unbound(p); !equality.Semantic.DeepEqual(got, want) || !equality.Semantic.DeepEqual(p, was) {
		t.Errorf("got %+v of %+v", got, p)
	}
}
