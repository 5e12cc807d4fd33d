package growth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
)

// A group whose machine never joined is at its largest size by that machine: it is stuck, or under
// way, and no limit is in the way.
func TestMachinesThatTakeUpASize(t *testing.T) {
	const size = "pod didn't trigger scale-up: 1 max node group size reached"
	empty := func(rest string) string {
		return "- name: gpu\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 1, nodeCounts: {registered: {total: 0, ready: 0}" + rest + "}}\n"
	}
	at := func(w *rcatest.World, list string) {
		status(w, 0, list)
		says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", size, 0)
	}
	grows := func(w *rcatest.World, ago time.Duration) {
		says(w, scaling.ClusterAutoscaler, "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]", ago)
	}
	const stuck = "ScaleUpStuck likely: 1 machine of node group gpu was asked of the cloud and never joined, and takes up the group's largest size"
	run(t, map[string]row{
		"long since":       {func(w *rcatest.World) { at(w, empty(", longUnregistered: 1")) }, stuck},
		"asked long ago":   {func(w *rcatest.World) { at(w, empty("")); grows(w, promised+time.Second) }, stuck},
		"asked just now":   {func(w *rcatest.World) { at(w, empty("")); grows(w, promised) }, "ScalingUp likely: 1 machine of node group gpu is asked of the cloud and has not joined yet; the group may have no more"},
		"nobody says when": {func(w *rcatest.World) { at(w, empty("")) }, "AutoscalerLimit likely: at their largest size: node group gpu (1 of 1)"},
		"all have joined":  {func(w *rcatest.World) { at(w, grown("gpu", 3, "")); grows(w, time.Hour) }, "AutoscalerLimit likely: at their largest size: node group gpu (3 of 3)"},
		"another is full too": {func(w *rcatest.World) { at(w, empty(", longUnregistered: 1")+grown("more", 3, "")) },
			"AutoscalerLimit likely: at their largest size: node group gpu (1 of 1), more (3 of 3)" + whichIsUnknown},
	})
}

// A pool is asked for by its name: of one whose group is at zero the autoscaler does not know it.
func TestPoolsAskedForByName(t *testing.T) {
	asks := func(w *rcatest.World, key, value, list string) {
		w.Wait.Spec.NodeSelector = map[string]string{key: value}
		status(w, 0, list)
		says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 node(s) didn't match Pod's node affinity/selector", 0)
	}
	const noMatch = "of the template NodeSelectorMismatch: its selector or affinity fits nothing that a node group makes: node(s) didn't match Pod's node affinity/selector"
	const zero = "- name: aks-gpu-1-vmss\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 2}\n"
	run(t, map[string]row{
		"at zero":     {func(w *rcatest.World) { member(w, "s", "system", false); asks(w, "agentpool", "gpu", zero) }, "AutoscalerCannotHelp likely: the cluster autoscaler does not know that nodes of group aks-gpu-1-vmss, which is at zero, have label agentpool=gpu, which the pod asks for"},
		"of no group": {func(w *rcatest.World) { member(w, "s", "system", false); asks(w, "agentpool", "big", zero) }, noMatch},
		"another label": {func(w *rcatest.World) {
			member(w, "s", "system", false).Labels["team"] = "x"
			asks(w, "team", "gpu", zero)
		}, noMatch},
		"it has a node": {func(w *rcatest.World) { member(w, "g", "gpu", false); asks(w, "agentpool", "gpu", zero) }, noMatch},
	})
}

// An autoscaler that stands still says nothing of pods: its status and the nodes for which it does
// are all there is.
func TestAutoscalersThatStandStill(t *testing.T) {
	const wide = "clusterWide: {health: {status: Unhealthy, nodeCounts: {registered: {total: 9, unready: {total: 6}}}}}\nnodeGroups:\n"
	halted := func(w *rcatest.World, text string) {
		status(w, 0, "")
		w.ConfigMaps[len(w.ConfigMaps)-1].Data["status"] = "autoscalerStatus: Running\n" + text
		w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-promised))
	}
	bare := func(w *rcatest.World, since time.Duration) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{"accelerator": "nvidia"}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-since))}}
		w.Nodes = append(w.Nodes, n)
	}
	const still = "AutoscalerCannotHelp likely: the cluster autoscaler does nothing while it takes the cluster for unhealthy: of 9 nodes 6 are not ready to it"
	const named = "; 1 node labelled as having GPUs, without one under a name that it knows"
	run(t, map[string]row{
		"unhealthy":            {func(w *rcatest.World) { halted(w, wide) }, still},
		"for such a node":      {func(w *rcatest.World) { halted(w, wide); bare(w, time.Hour) }, still + named},
		"healthy, such a node": {func(w *rcatest.World) { halted(w, "nodeGroups: []\n"); bare(w, promised) }, "AutoscalerCannotHelp possible: the cluster autoscaler runs and has said nothing of the pod" + named},
		"it may still come":    {func(w *rcatest.World) { halted(w, "nodeGroups: []\n"); bare(w, promised-time.Second) }, ""},
		"nothing to see":       {func(w *rcatest.World) { halted(w, "nodeGroups: []\n") }, ""},
		"a young pod": {func(w *rcatest.World) {
			halted(w, wide)
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(time.Second - promised))
		}, ""},
		"events unread": {func(w *rcatest.World) { halted(w, wide); w.Unread["Event"] = "x" }, ""},
	})
}

// A machine that joined and is not Karpenter's to it is stuck, and a node is kept shut by taints that
// somebody was to take off.
func TestMachinesThatJoinedAndCannotBeUsed(t *testing.T) {
	launched, registered := condition("Launched", "True", "Launched", "", time.Hour), condition("Registered", "True", "Registered", "", time.Hour)
	run(t, map[string]row{
		"not its own": {func(w *rcatest.World) {
			machine(w, time.Minute, "", launched, condition("Registered", "False", "UnregisteredTaintNotFound", "no taint", 0))
		}, "ScaleUpStuck likely: the machine of NodeClaim gpu-abcde joined, and Karpenter does not take it for its own: UnregisteredTaintNotFound: no taint"},
		"one of several": {func(w *rcatest.World) {
			machine(w, time.Minute, "", launched, condition("Registered", "Unknown", "MultipleNodesFound", "matched several", 0))
		}, "ScaleUpStuck likely: several nodes have the machine of NodeClaim gpu-abcde, and Karpenter takes none of them for it: MultipleNodesFound: matched several"},
		"waited for": {func(w *rcatest.World) {
			machine(w, time.Minute, "", launched, condition("Registered", "Unknown", "NodeNotFound", "no node", 0))
		}, "ScalingUp likely: Karpenter is bringing a node: NodeClaim gpu-abcde has not registered yet"},
	})
	shut := corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	g := of(t, func(w *rcatest.World) {
		machine(w, time.Hour, "new", launched, registered, condition("Initialized", "Unknown", "KnownEphemeralTaintsExist", "", time.Hour))
		w.NodeClaims[0].Object["spec"].(map[string]any)["startupTaints"] = []any{map[string]any{"key": "own", "effect": "NoSchedule"}}
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}, {Key: "own", Effect: corev1.TaintEffectNoExecute}, {Key: "other", Effect: corev1.TaintEffectNoSchedule}, shut}}})
	})
	if len(g.Kept) != 2 || g.Kept[0].Effect != corev1.TaintEffectNoSchedule || g.Kept[1] != shut {
		t.Errorf("kept by %v", g.Kept)
	}
}

// What no fresh node has as the autoscaler knows them, one may have: of a group at zero nobody knows,
// and a group's own node shows it where it would hold the pod with nobody on it.
func TestFreshNodesThatWouldDo(t *testing.T) {
	const lacks = "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu"
	const says1 = "AutoscalerCannotHelp likely: no fresh node of any group, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (1 Insufficient nvidia.com/gpu)"
	at := func(w *rcatest.World, cpu string, target int) {
		n := member(w, "g", "gpu", true)
		n.Status.Allocatable[corev1.ResourceCPU] = rcatest.List("x", cpu)["x"]
		asks := rcatest.List("nvidia.com/gpu", "1")
		asks[corev1.ResourceCPU] = rcatest.List("x", "2")["x"]
		w.Asking(asks)
		status(w, 0, grown("gpu", target, ""))
		says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", lacks, 0)
	}
	run(t, map[string]row{
		"as its node shows": {func(w *rcatest.World) { at(w, "2", 1) }, says1 + "; a node of group gpu offers as many, which it does not count on"},
		"instances of its node": {func(w *rcatest.World) {
			at(w, "2", 1)
			has := &w.Nodes[len(w.Nodes)-1].Status
			has.Allocatable["nvidia.com/mig-1g.5gb"] = rcatest.List("x", "7")["x"]
			has.Capacity["nvidia.com/mig-1g.5gb"] = rcatest.List("x", "7")["x"]
			w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "1"))
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient nvidia.com/mig-1g.5gb", 0)
		}, "AutoscalerCannotHelp likely: the cluster autoscaler knows no machine that offers nvidia.com/mig-1g.5gb: MIG instances and shares are made on the node, and no instance type or template speaks of them; a node of group gpu offers as many, which it does not count on"},
		"too small a machine": {func(w *rcatest.World) { at(w, "1", 1) }, says1},
		"it may have no more": {func(w *rcatest.World) { at(w, "2", 3) }, says1},
	})
}

// Rules over zones are held against machines like those that are there.
func TestNeighboursOfFreshNodes(t *testing.T) {
	const looked = "AutoscalerCannotHelp likely: the cluster autoscaler brings no node: it takes a fresh one for one like those that its group has, and there the pod's affinity or spread would not be met"
	apart := func(w *rcatest.World, key, text string) {
		w.Wait.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}, {TopologyKey: key}}}}
		status(w, 0, grown("gpu", 1, ""))
		says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 node(s) didn't match "+text, 0)
	}
	run(t, map[string]row{
		"apart":  {func(w *rcatest.World) { apart(w, "zone", "pod anti-affinity rules") }, looked + " over zone"},
		"beside": {func(w *rcatest.World) { apart(w, corev1.LabelHostname, "pod affinity rules") }, looked},
		"spread": {func(w *rcatest.World) { apart(w, "zone", "pod topology spread constraints") }, looked + " over zone"},
	})
}
