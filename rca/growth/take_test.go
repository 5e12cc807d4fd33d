package growth

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
)

// A pool whose machines cannot hold the pod whatever their size is told by what makes it so,
// unless another that is for GPUs lacks room too.
func TestWhatPoolsTake(t *testing.T) {
	const over = `, daemonset overhead={"cpu":"210m","memory":"251658241","pods":"5"}, no instance type satisfied resources {} (no instance type has enough resources)`
	const room = "AutoscalerCannotHelp likely: no instance type of its pools has room for what the pod asks for at once (1 nvidia.com/gpu with what DaemonSets take: 210m cpu, 241Mi memory, 5 pods)"
	of := func(pool string) string { return strings.Replace(room, "its pools", "NodePool "+pool, 1) }
	const amd = "AutoscalerCannotHelp likely: NodePool gpu takes machines with GPUs of another maker alone (karpenter.k8s.aws/instance-family In g4ad): none of them offers nvidia.com/gpu"
	says1 := func(w *rcatest.World, pools ...string) {
		text := "Failed to schedule pod"
		for i, p := range pools {
			text += map[bool]string{true: ", ", false: "; "}[i == 0] + `incompatible with nodepool "` + p + `"` + over
		}
		says(w, "karpenter", "FailedScheduling", text, 0)
	}
	takes := func(w *rcatest.World, name, family, class string) {
		w.NodePools = append(w.NodePools, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
			"requirements": []any{map[string]any{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": []any{family}}}}}}}})
	}
	holds := func(w *rcatest.World, name string, pods int64) {
		w.NodeClasses.AWS = append(w.NodeClasses.AWS, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"kubelet": map[string]any{"maxPods": pods}}}})
	}
	run(t, map[string]row{
		"machines of AMD's": {func(w *rcatest.World) { says1(w, "gpu"); takes(w, "gpu", "g4ad", "") }, amd},
		"beside machines of none": {func(w *rcatest.World) {
			says1(w, "cpus", "gpu")
			takes(w, "cpus", "m5", "")
			takes(w, "gpu", "g4ad", "")
		}, amd},
		"beside NVIDIA's, too small": {func(w *rcatest.World) {
			says1(w, "gpu", "other")
			takes(w, "gpu", "g4ad", "")
			takes(w, "other", "g5", "")
		}, of("other")},
		"asked of AMD": {func(w *rcatest.World) {
			w.Asking(corev1.ResourceList{"amd.com/gpu": rcatest.List("x", "1")["x"]})
			says1(w, "gpu")
			takes(w, "gpu", "g4ad", "")
		}, "AutoscalerCannotHelp likely: no instance type of its pools has amd.com/gpu together with what else the pod asks for, as Karpenter counts"},
		"too few pods":                {func(w *rcatest.World) { says1(w, "gpu"); takes(w, "gpu", "g5", "one"); holds(w, "one", 5) }, "AutoscalerCannotHelp likely: EC2NodeClass one lets 5 pods onto a machine of NodePool gpu, and 6 are to be there: this one, and those of DaemonSets"},
		"enough pods":                 {func(w *rcatest.World) { says1(w, "gpu"); takes(w, "gpu", "g5", "one"); holds(w, "one", 6) }, of("gpu")},
		"a class that says no number": {func(w *rcatest.World) { says1(w, "gpu"); takes(w, "gpu", "g5", "one"); holds(w, "two", 1) }, of("gpu")},
		"a pool that was not read":    {func(w *rcatest.World) { says1(w, "gpu", "gone"); takes(w, "gpu", "g4ad", "") }, room},
	})
}
