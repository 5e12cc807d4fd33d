package fixes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A DaemonSet's pod without a GPU loses nothing when it is made again; one with a GPU does, and anybody else's.
func TestWhoLosesByBeingMadeAgain(t *testing.T) {
	pod := func(name, kind, gpus string) *corev1.Pod {
		yes := true
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}}}}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: &yes}}
		}
		return p
	}
	given := []*corev1.Pod{pod("agent", "DaemonSet", "0"), pod("worker", "DaemonSet", "1"), pod("replica", "ReplicaSet", "0"), pod("bare", "", "0")}
	got := losing(given)
	if len(got) != 3 || got[0] != given[1] || got[1] != given[2] || got[2] != given[3] || given[0].Name != "agent" {
		t.Errorf("%d lose something", len(got))
	}
}
