package rca

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// The order of the contract, each line worse than the one before it for the one
// reason that is named.
func TestOrderOfFixes(t *testing.T) {
	good := func(change func(*candidate)) *candidate {
		f := &candidate{keeps: true, cost: noVictims, fix: Fix{Kind: EvictPods, Automatic: true, Proof: Proof{Verdict: Schedules}, Cost: Cost{Nodes: []string{"a"}, Minutes: 1}}}
		change(f)
		return f
	}
	list := []struct {
		reason string
		fix    *candidate
	}{
		{"best", good(func(*candidate) {})},
		{"later in the catalogue", good(func(f *candidate) { f.fix.Kind = RepartitionGPU })},
		{"more minutes", good(func(f *candidate) { f.fix.Cost.Minutes = 2 })},
		{"more nodes", good(func(f *candidate) { f.fix.Cost.Nodes = []string{"a", "b"} })},
		{"fewer devices than asked", good(func(f *candidate) { f.less = 1 })},
		{"more work lost", good(func(f *candidate) { f.cost = victimCost{lost: time.Minute} })},
		{"more victims", good(func(f *candidate) { f.cost = victimCost{number: 1} })},
		{"higher sum", good(func(f *candidate) { f.cost = victimCost{sum: 1} })},
		{"higher priority", good(func(f *candidate) { f.cost = victimCost{highest: 1} })},
		{"work that goes on", good(func(f *candidate) { f.cost = victimCost{working: 1} })},
		{"beyond a budget", good(func(f *candidate) { f.cost = victimCost{beyond: 1} })},
		{"by hand", good(func(f *candidate) { f.fix.Automatic = false })},
		{"gives something else", good(func(f *candidate) { f.keeps = false })},
		{"waits", good(func(f *candidate) { f.fix.Proof.Verdict = Waits })},
		{"unproven", good(func(f *candidate) { f.fix.Proof.Verdict = Unproven })},
		{"refuted", good(func(f *candidate) { f.fix.Proof.Verdict = Refuted })},
	}
	for i := range list {
		for j := range list {
			if got := list[i].fix.order(list[j].fix, true); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q against %q: %d", list[i].reason, list[j].reason, got)
			}
		}
	}
}

// What a plan relies on makes it another plan; what the kubelet writes every few
// minutes does not.
func TestPlansRelyOnFacts(t *testing.T) {
	fresh := func() *nodeView {
		return &nodeView{
			Node: &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "n", ResourceVersion: "1", Labels: map[string]string{labelMIGConfig: "all-1g.5gb", labelMIGState: "success", "other": "1"}},
				Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("7"), corev1.ResourceCPU: resource.MustParse("8")}},
			},
			gpus: []placement.GPU{{Index: 0, Slots: []placement.Slot{{Profile: "1g.5gb", Start: 0, Size: 1, Held: true, Holder: nodeprobe.Holder{Namespace: "a", Pod: "p"}}}}},
		}
	}
	plan := func(n *nodeView) string {
		return PlanHash([]Action{{Verb: VerbRelayout, Target: nodeTarget(n.Node), Relies: n.relies()}})
	}
	first := plan(fresh())
	for name, change := range map[string]func(*nodeView){
		"resourceVersion": func(n *nodeView) { n.ResourceVersion = "2" },
		"another label":   func(n *nodeView) { n.Labels["other"] = "2" },
		"a heartbeat": func(n *nodeView) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		},
		"CPU": func(n *nodeView) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("9") },
	} {
		n := fresh()
		if change(n); plan(n) != first {
			t.Errorf("%s makes the plan another one", name)
		}
	}
	seen := []string{first}
	for name, change := range map[string]func(*nodeView){
		"uid":         func(n *nodeView) { n.UID = "m" },
		"cordon":      func(n *nodeView) { n.Spec.Unschedulable = true },
		"taint":       func(n *nodeView) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} },
		"mig.config":  func(n *nodeView) { n.Labels[labelMIGConfig] = "all-2g.10gb" },
		"state":       func(n *nodeView) { n.Labels[labelMIGState] = "pending" },
		"allocatable": func(n *nodeView) { n.Status.Allocatable["nvidia.com/mig-1g.5gb"] = resource.MustParse("6") },
		"layout":      func(n *nodeView) { n.gpus[0].Slots[0].Start = 1 },
		"holder":      func(n *nodeView) { n.gpus[0].Slots[0].Holder.Pod = "q" },
		"freed":       func(n *nodeView) { n.gpus[0].Slots[0].Held = false },
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
