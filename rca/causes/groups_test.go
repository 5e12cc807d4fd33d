package causes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// group is a node group as the cluster autoscaler's status has it; code: the cloud has refused
// it a machine.
func group(name string, registered, most int, code string) string {
	up := "{status: NoActivity}"
	if code != "" {
		up = fmt.Sprintf("{status: Backoff, backoffInfo: {errorCode: %s, errorMessage: none left}}", code)
	}
	return fmt.Sprintf("- {name: %s, health: {status: Healthy, nodeCounts: {registered: {total: %d, ready: %d}}, cloudProviderTarget: %d, maxSize: %d}, scaleUp: %s}\n", name, registered, registered, registered, most, up)
}

// Of several groups in the way those are named that could hold the pod, as far as the nodes
// tell; a group of machines that could not is in nobody's way.
func TestGroupsThatCouldHoldThePod(t *testing.T) {
	pool := func(name string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return label("eks.amazonaws.com/nodegroup", name)
	}
	cpu := func(w *world, name, of string) {
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"eks.amazonaws.com/nodegroup": of, "node.kubernetes.io/instance-type": "m5.large"}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": *quantity(8), "memory": *quantity(1 << 35), "pods": *quantity(110)}}})
	}
	held := func(w *world, of string) {
		w.gpuNode(l4("n1", 1), pool(of))
		w.holds(w.pod("holder", "n1", "nvidia.com/gpu", 1), 0)
	}
	for name, row := range map[string]struct {
		fill   func(*world)
		groups string
		said   string
		want   diagnosis.CauseID
		says   string
	}{
		"the full one has no GPUs": {func(w *world) { cpu(w, "c1", "core") }, group("eks-core-1", 1, 1, "") + group("eks-gpu-2", 0, 4, ""), "1 Insufficient nvidia.com/gpu, 1 max node group size reached",
			diagnosis.AutoscalerCannotHelp, "has the nvidia.com/gpu that the pod asks for (1 Insufficient nvidia.com/gpu); of a group at zero (eks-gpu-2) it knows no more than its template says"},
		"the full one's nodes are not all seen": {func(w *world) { cpu(w, "c1", "other") }, group("eks-core-1", 2, 2, "") + group("eks-gpu-2", 0, 4, ""), "1 Insufficient nvidia.com/gpu, 1 max node group size reached",
			diagnosis.AutoscalerLimit, "at their largest size: node group eks-core-1 (2 of 2)"},
		"the full one is the GPUs'": {func(w *world) { cpu(w, "c1", "core"); held(w, "gpu") }, group("eks-core-1", 1, 1, "") + group("eks-gpu-2", 1, 1, ""), "2 max node group size reached",
			diagnosis.AutoscalerLimit, "at their largest size: node group eks-gpu-2 (1 of 1)"},
		"nobody knows which": {func(w *world) { cpu(w, "c1", "core"); held(w, "other") }, group("a", 1, 1, "") + group("b", 1, 1, ""), "2 max node group size reached",
			diagnosis.AutoscalerLimit, "at their largest size: node group a (1 of 1), b (1 of 1); which of them could hold the pod nobody knows"},
		"two were refused, one is the GPUs'": {func(w *world) { cpu(w, "c1", "core"); held(w, "gpu") }, group("eks-core-1", 1, 3, "QUOTA_EXCEEDED") + group("eks-gpu-2", 1, 3, "RESOURCE_POOL_EXHAUSTED"), "2 in backoff after failed scale-up",
			diagnosis.CloudCapacityRefused, "the cloud refuses node group eks-gpu-2 a machine with RESOURCE_POOL_EXHAUSTED"},
		"both could": {func(w *world) { held(w, "gpu") }, group("eks-gpu-1", 1, 3, "QUOTA_EXCEEDED") + group("eks-gpu-2", 1, 3, "RESOURCE_POOL_EXHAUSTED"), "2 in backoff after failed scale-up",
			diagnosis.CloudCapacityRefused, "the cloud refuses node groups eks-gpu-1, eks-gpu-2 a machine with QUOTA_EXCEEDED, RESOURCE_POOL_EXHAUSTED"},
		"two were refused, nobody knows": {func(w *world) { held(w, "other") }, group("a", 0, 3, "QUOTA_EXCEEDED") + group("b", 0, 3, "RESOURCE_POOL_EXHAUSTED"), "2 in backoff after failed scale-up",
			diagnosis.CloudCapacityRefused, "which of them could hold the pod nobody knows"},
		"what was refused could not": {func(w *world) { cpu(w, "c1", "core"); held(w, "gpu") }, group("eks-core-1", 1, 3, "QUOTA_EXCEEDED") + group("eks-gpu-2", 1, 1, ""), "1 in backoff after failed scale-up, 1 max node group size reached",
			diagnosis.AutoscalerLimit, "at their largest size: node group eks-gpu-2 (1 of 1)"},
		"and nothing else was said": {func(w *world) { cpu(w, "c1", "core"); held(w, "gpu") }, group("eks-core-1", 1, 3, "QUOTA_EXCEEDED"), "1 in backoff after failed scale-up",
			diagnosis.AutoscalerCannotHelp, "no node group that failed to grow could hold the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			row.fill(w)
			w.pod("w", "", "nvidia.com/gpu", 1)
			w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: cluster.AutoscalerStatus}, Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups:\n" + row.groups}})
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w"}, Reason: "NotTriggerScaleUp", Message: "pod didn't trigger scale-up: " + row.said,
				Source: corev1.EventSource{Component: "cluster-autoscaler"}, LastTimestamp: metav1.NewTime(rcatest.Noon)})
			var got []diagnosis.CauseID
			g := w.open(t).Growth()
			for _, id := range diagnosis.Catalogue() {
				f := g.Told(id)
				if f == nil {
					continue
				}
				if got = append(got, id); id == row.want && !strings.Contains(f.Says, row.says) {
					t.Errorf("says %q", f.Says)
				}
			}
			if len(got) != 1 || got[0] != row.want {
				t.Errorf("told %v, want %s", got, row.want)
			}
		})
	}
}
