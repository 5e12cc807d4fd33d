package act

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podOf is a pod of a Job; it waits where it has no node, else it runs.
func podOf(owner, name, node string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: owner, UID: types.UID(owner), Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}
