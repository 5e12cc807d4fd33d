package gangs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// Workers that have a node and wait for their head hold CPU and memory that it needs, and none of them
// ends; one that has begun goes on with fewer. What is short where the pod may not be tells nothing.
func TestMembersThatHaveNotBegun(t *testing.T) {
	const vain = "likely: its own workload holds what it waits for: all members ask for "
	node := func(w *rcatest.World, name, cpu, memory string, taints ...corev1.Taint) {
		w.AddNode(sim.Node{Name: name, Taints: taints}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Status.Allocatable[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse(cpu), resource.MustParse(memory)
		})
	}
	worker := func(w *rcatest.World, name string, phase corev1.PodPhase, cpu string) *corev1.Pod {
		p := w.Wait.DeepCopy()
		p.Name, p.UID, p.Spec.NodeName, p.Status.Phase = name, types.UID(name), "n", phase
		p.Labels = map[string]string{"ray.io/node-type": "worker"}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: rcatest.List("cpu", cpu, "memory", "1Gi")}
		w.Pods = append(w.Pods, p)
		return p
	}
	team := corev1.Taint{Key: "team", Effect: corev1.TaintEffectNoSchedule}
	for name, k := range map[string]struct {
		fill func(*rcatest.World) []*corev1.Pod
		want string
	}{
		"they wait for it": {func(w *rcatest.World) []*corev1.Pod {
			node(w, "n", "8", "64Gi")
			return []*corev1.Pod{worker(w, "m", corev1.PodPending, "6")}
		}, vain + "10 cpu together, the nodes that they may use have 8, and no member ends before all run"},
		"memory is short where it may not be": {func(w *rcatest.World) []*corev1.Pod {
			node(w, "n", "8", "64Gi")
			node(w, "x", "64", "1Gi", team)
			return []*corev1.Pod{worker(w, "m", corev1.PodPending, "6")}
		}, vain + "10 cpu together, the nodes that they may use have 8, and no member ends before all run"},
		"one has begun": {func(w *rcatest.World) []*corev1.Pod {
			node(w, "n", "8", "64Gi")
			return []*corev1.Pod{worker(w, "m", corev1.PodPending, "3"), worker(w, "o", corev1.PodRunning, "3")}
		}, ""},
		"it has begun": {func(w *rcatest.World) []*corev1.Pod {
			node(w, "n", "8", "64Gi")
			return []*corev1.Pod{worker(w, "m", corev1.PodRunning, "6")}
		}, ""},
		"who leads has begun": {func(w *rcatest.World) []*corev1.Pod {
			node(w, "n", "8", "64Gi")
			p := worker(w, "m", corev1.PodRunning, "6")
			p.Labels["ray.io/node-type"] = "head"
			return []*corev1.Pod{p}
		}, ""},
		"nobody has a node": {func(w *rcatest.World) []*corev1.Pod { node(w, "n", "2", "64Gi"); return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.Asking(rcatest.List("cpu", "4", "memory", "2Gi"))
			made("RayCluster", "w", append(k.fill(w), w.Wait)...)
			if got := found(waits(t, w, "RayCluster", "w", 1).Deadlock()); got != k.want {
				t.Errorf("%s, want %s", got, k.want)
			}
		})
	}
}
