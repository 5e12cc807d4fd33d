package terms

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// Pods of the same controller that were evicted for their own use of a disk are told of, and nobody else.
func TestWhoFillsTheDisk(t *testing.T) {
	yes := true
	of := func(name, uid, node string, phase corev1.PodPhase, reason, says string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: types.UID(uid), Controller: &yes}}},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase, Reason: reason, Message: says}}
	}
	const own = "The node was low on resource: ephemeral-storage. Container llm was using 900Mi, request is 0, has larger consumption of ephemeral-storage. "
	const says = " evicted from it for what they write themselves: container llm was using 900Mi of its disk, and asks for 0"
	waits := of("w", "u", "", corev1.PodPending, "", "")
	bare := waits.DeepCopy()
	bare.OwnerReferences = nil
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		pods []*corev1.Pod
		full bool
		want string
	}{
		"one":                  {waits, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Evicted", own)}, true, "its pod p was" + says},
		"two":                  {waits, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Evicted", own), of("q", "u", "n", corev1.PodFailed, "Evicted", own)}, true, "2 pods of it were" + says},
		"there is room":        {waits, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Evicted", own)}, false, ""},
		"of somebody else":     {waits, []*corev1.Pod{of("p", "v", "n", corev1.PodFailed, "Evicted", own)}, true, ""},
		"on another node":      {waits, []*corev1.Pod{of("p", "u", "m", corev1.PodFailed, "Evicted", own)}, true, ""},
		"for something else":   {waits, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Evicted", "The node had condition: [DiskPressure]. ")}, true, ""},
		"it failed by itself":  {waits, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Error", own)}, true, ""},
		"a pod without owners": {bare, []*corev1.Pod{of("p", "u", "n", corev1.PodFailed, "Evicted", own)}, true, ""},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
		if tc.full {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}}
		}
		got, evidence := "", 0
		if o := OverfullOn(view.Subject{Cluster: &view.Cluster{State: &cluster.State{Pods: tc.pods}}, Pod: tc.pod}, n); o != nil {
			got, evidence = o.Says(), len(o.Evidence())
		}
		if got != tc.want || got != "" && evidence != len(tc.pods) {
			t.Errorf("%s: %q, %d", name, got, evidence)
		}
	}
}
