package program

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// A pod that a kubelet refused is said to lie around where its ReplicaSet has all that it wants.
func TestWhatLiesAround(t *testing.T) {
	yes, three := true, int32(3)
	pod := func(phase corev1.PodPhase, reason, says string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "u", Controller: &yes}}}, Status: corev1.PodStatus{Phase: phase, Reason: reason, Message: says}}
	}
	const refused = ": OutOfnvidia.com/gpu (used: 0, capacity: 0)"
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		ready int32
		want  string
	}{
		"its set has all":     {pod(corev1.PodFailed, "OutOfnvidia.com/gpu", "used: 0,\n capacity: 0."), 3, refused + "; replicaset/r has all that it wants (3), so this one only lies around and may be deleted: kubectl -n a delete pod p"},
		"its set lacks one":   {pod(corev1.PodFailed, "OutOfnvidia.com/gpu", "used: 0, capacity: 0"), 2, refused},
		"without words":       {pod(corev1.PodFailed, "Evicted", ""), 2, ": Evicted"},
		"it failed by itself": {pod(corev1.PodFailed, "", ""), 3, ""},
		"it runs":             {pod(corev1.PodRunning, "", ""), 3, ""},
	} {
		st := &cluster.State{ReplicaSets: []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r", UID: "u"}, Spec: appsv1.ReplicaSetSpec{Replicas: &three}, Status: appsv1.ReplicaSetStatus{ReadyReplicas: tc.ready}}}}
		if got := liesAround(st, tc.pod); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
