package view

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
)

// What a plan relies on makes it another plan; what the kubelet writes every few
// minutes does not.
func TestPlansRelyOnFacts(t *testing.T) {
	fresh := func() *Node {
		return &Node{
			Node: &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "n", ResourceVersion: "1", Labels: map[string]string{LabelMIGConfig: "all-1g.5gb", LabelMIGState: "success", "other": "1"}},
				Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("7"), corev1.ResourceCPU: resource.MustParse("8")}},
			},
			GPUs: []placement.GPU{{Index: 0, Slots: []placement.Slot{{Profile: "1g.5gb", Start: 0, Size: 1, Held: true, Holder: nodeprobe.Holder{Namespace: "a", Pod: "p"}}}}},
		}
	}
	plan := func(n *Node) string {
		return diagnosis.PlanHash("gpu-1", time.Time{}, []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: NodeTarget(n.Node), Relies: n.Relies()}})
	}
	first := plan(fresh())
	for name, change := range map[string]func(*Node){
		"resourceVersion": func(n *Node) { n.ResourceVersion = "2" },
		"another label":   func(n *Node) { n.Labels["other"] = "2" },
		"a heartbeat": func(n *Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		},
		"CPU": func(n *Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("9") },
	} {
		n := fresh()
		if change(n); plan(n) != first {
			t.Errorf("%s makes the plan another one", name)
		}
	}
	seen := []string{first}
	for name, change := range map[string]func(*Node){
		"uid":         func(n *Node) { n.UID = "m" },
		"cordon":      func(n *Node) { n.Spec.Unschedulable = true },
		"taint":       func(n *Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} },
		"mig.config":  func(n *Node) { n.Labels[LabelMIGConfig] = "all-2g.10gb" },
		"state":       func(n *Node) { n.Labels[LabelMIGState] = "pending" },
		"allocatable": func(n *Node) { n.Status.Allocatable["nvidia.com/mig-1g.5gb"] = resource.MustParse("6") },
		"layout":      func(n *Node) { n.GPUs[0].Slots[0].Start = 1 },
		"holder":      func(n *Node) { n.GPUs[0].Slots[0].Holder.Pod = "q" },
		"freed":       func(n *Node) { n.GPUs[0].Slots[0].Held = false },
	} {
		n := fresh()
		change(n)
		if p := plan(n); slices.Contains(seen, p) {
			t.Errorf("%s leaves the plan as another was", name)
		} else {
			seen = append(seen, p)
		}
	}
}
