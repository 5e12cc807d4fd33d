package causes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

// plainNode has no GPU.
func plainNode(name string) *corev1.Node {
	list := corev1.ResourceList{"cpu": *quantity(8), "memory": resource.MustParse("8Gi"), "pods": *quantity(110)}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}, Status: corev1.NodeStatus{Allocatable: list, Capacity: list.DeepCopy()}}
}

func tainted(taints ...corev1.Taint) sim.Node {
	return sim.Node{Name: "n1", Model: "L4", Taints: taints}
}

func noSchedule(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
}

// upgrading is a node that its driver's upgrade keeps cordoned, with the taint that says so.
func upgrading(taints ...corev1.Taint) sim.Node {
	n := tainted(append(taints, noSchedule(corev1.TaintNodeUnschedulable))...)
	n.Cordoned, n.Labels = true, map[string]string{stack.UpgradeState: "drain-required"}
	return n
}

func toleratesCordon(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
}

// Which pods nodes do not take: by taints, a cordon, their state.
func TestNodesThatAreKept(t *testing.T) {
	wants := func(w *world) { w.pod("w", "", "nvidia.com/gpu", 1) }
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: rcatest.Noon}}
	by := func(manager, subresource string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource})
		}
	}
	rows{
		"taints, and not those that prefer only": {func(w *world) {
			w.gpuNode(tainted(noSchedule("team"), corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, corev1.Taint{Key: "hard", Value: "x", Effect: corev1.TaintEffectNoExecute}))
			wants(w)
		}, `
UntoleratedTaint proven n1: taint team:NoSchedule, hard=x:NoExecute is not tolerated
  Node/n1: taint team:NoSchedule is not tolerated
  Node/n1: taint hard=x:NoExecute is not tolerated
`},
		"a taint that is tolerated is none": {func(w *world) {
			w.gpuNode(tainted(noSchedule("team"), noSchedule("other")))
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
			})
		}, `
UntoleratedTaint proven n1: taint other:NoSchedule is not tolerated
  Node/n1: taint other:NoSchedule is not tolerated
`},
		"a node that is not ready, and what would keep the pod then": {func(w *world) {
			w.gpuNode(tainted(noSchedule("node.kubernetes.io/not-ready"), noSchedule("team")))
			wants(w)
		}, `
UntoleratedTaint proven n1: taint team:NoSchedule is not tolerated
  Node/n1: taint team:NoSchedule is not tolerated
NodeNotReady proven n1: not ready
  Node/n1: taint node.kubernetes.io/not-ready:NoSchedule
`},
		"a node that starts": {func(w *world) {
			w.gpuNode(tainted(noSchedule("karpenter.sh/unregistered")))
			wants(w)
		}, `
NodeNotReady proven n1: not opened: startup taint karpenter.sh/unregistered stands on it, long after it was Ready
  Node/n1: taint karpenter.sh/unregistered:NoSchedule
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
`},
		"a node that is Ready, and short of disk": {func(w *world) {
			w.gpuNode(tainted(noSchedule("node.kubernetes.io/disk-pressure")))
			wants(w)
		}, `
NodeNotReady proven n1: under disk pressure
  Node/n1: taint node.kubernetes.io/disk-pressure:NoSchedule
`},
		"a node that is short of disk, and not ready": {func(w *world) {
			w.gpuNode(tainted(noSchedule("node.kubernetes.io/disk-pressure"), noSchedule("node.kubernetes.io/not-ready")))
			wants(w)
		}, `
NodeNotReady proven n1: not ready
  Node/n1: taint node.kubernetes.io/not-ready:NoSchedule
`},
		"a startup taint whose DaemonSet is let on the node": {func(w *world) {
			w.gpuNode(tainted(noSchedule("node.cilium.io/agent-not-ready"), noSchedule("node.kubernetes.io/memory-pressure")))
			w.DaemonSets = append(w.DaemonSets, opener("cilium", "node.cilium.io/agent-not-ready"))
			wants(w)
		}, `
NodeNotReady proven n1: not opened: startup taint node.cilium.io/agent-not-ready stands on it, long after it was Ready
  Node/n1: taint node.cilium.io/agent-not-ready:NoSchedule
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
`},
		"a startup taint whose DaemonSet is kept off the node": {func(w *world) {
			w.gpuNode(tainted(noSchedule("nvidia.com/gpu"), noSchedule("node.cilium.io/agent-not-ready")))
			w.DaemonSets = append(w.DaemonSets, opener("other", "x"), opener("cilium", "node.cilium.io/agent-not-ready"))
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
			})
		}, `
NodeNotReady proven n1: not opened yet: startup taint node.cilium.io/agent-not-ready stands on it, for DaemonSet kube-system/cilium, which takes it off, does not tolerate nvidia.com/gpu:NoSchedule
  Node/n1: taint node.cilium.io/agent-not-ready:NoSchedule
  DaemonSet/kube-system/cilium: its pod takes that taint off n1, and does not tolerate nvidia.com/gpu:NoSchedule
`},
		"a cordon, since when and who by": {func(w *world) {
			n := tainted(cordoned)
			n.Cordoned = true
			w.gpuNode(n, by("kubelet", ""), by("kubectl-drain", "status"), by("kubectl-cordon", ""))
			wants(w)
		}, `
NodeCordoned proven n1: cordoned
  Node/n1: spec.unschedulable is true since 2026-11-20 12:00 UTC, set by kubectl-cordon
`},
		"a cordon that tells nothing": {func(w *world) {
			n := tainted(noSchedule(corev1.TaintNodeUnschedulable), corev1.Taint{Key: "seen", Effect: corev1.TaintEffectPreferNoSchedule, TimeAdded: &metav1.Time{Time: rcatest.Noon}})
			n.Cordoned = true
			w.gpuNode(n, by("kubectl-drain", "status"))
			wants(w)
		}, `
NodeCordoned proven n1: cordoned
  Node/n1: spec.unschedulable is true
`},
		"a drain": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4", Cordoned: true}, by("kubectl-drain", ""))
			wants(w)
		}, `
NodeCordoned proven n1: cordoned
  Node/n1: spec.unschedulable is true, set by kubectl-drain
`},
		"a node in quarantine": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4", Cordoned: true}, by("kubectl-cordon", ""), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Annotations[diagnosis.OperationAnnotation] = string(diagnosis.MustJSON(diagnosis.Operation{ID: "1", Quarantined: "GPU 1 is sick"}))
			})
			wants(w)
		}, `
NodeCordoned proven n1: cordoned
  Node/n1: spec.unschedulable is true, kept so by unpend: GPU 1 is sick
`},
		"an upgrade of the driver that keeps the node cordoned": {func(w *world) {
			w.gpuNode(upgrading())
			wants(w)
		}, `
DriverNotReady likely n1: has its driver upgraded now (drain-required)
  Node/n1: label nvidia.com/gpu-driver-upgrade-state=drain-required
`},
		"it keeps no pod off that another rule does": {func(w *world) {
			w.gpuNode(upgrading())
			w.pod("w", "", "nvidia.com/gpu", 1, toleratesCordon, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"team": "ml"} })
		}, `
NodeSelectorMismatch proven n1: selector team=ml does not match
  Node/n1: label team is absent, ml was asked
`},
		"an upgrade of a node that is not ready": {func(w *world) {
			w.gpuNode(upgrading(noSchedule("node.kubernetes.io/unreachable")))
			wants(w)
		}, `
DriverNotReady likely n1: has its driver upgraded now (drain-required)
  Node/n1: label nvidia.com/gpu-driver-upgrade-state=drain-required
NodeNotReady proven n1: not ready
  Node/n1: taint node.kubernetes.io/unreachable:NoSchedule
`},
		"to uncordon a node that is not ready opens nothing": {func(w *world) {
			n := tainted(noSchedule(corev1.TaintNodeUnschedulable), noSchedule("node.kubernetes.io/unreachable"))
			n.Cordoned = true
			w.gpuNode(n)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
			})
		}, `
NodeNotReady proven n1: not ready
  Node/n1: taint node.kubernetes.io/unreachable:NoSchedule
`},
		"no node at all": {wants, `
NoNodes proven : the cluster has no node
  Node: the list is empty
`},
		"nodes that were not read are not none": {func(w *world) {
			w.Unread["Node"] = "forbidden"
			wants(w)
			w.Pods[0].Status.Conditions[0].Message = "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) were unschedulable. preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
		}, `
NodeCordoned possible : 3 of 5 nodes, by the scheduler's words: node(s) were unschedulable
  Pod/ml/w: PodScheduled: 0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) were unschedulable. preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling.
Unknown possible : 2 of 5 nodes, by the scheduler's words: Insufficient nvidia.com/gpu
  Pod/ml/w: PodScheduled: 0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) were unschedulable. preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling.
`},
		"what the scheduler said of all nodes": {func(w *world) {
			w.Unread["Node"] = "forbidden"
			wants(w)
			w.Pods[0].Status.Conditions[0].Message = `0/3 nodes are available: persistentvolumeclaim "data" not found.`
		}, `
VolumeConflict possible : 3 of 3 nodes, by the scheduler's words: persistentvolumeclaim "data" not found
  Pod/ml/w: PodScheduled: 0/3 nodes are available: persistentvolumeclaim "data" not found.
`},
		"the scheduler's words that there are none": {func(w *world) {
			w.Unread["Node"] = "forbidden"
			wants(w)
			w.Pods[0].Status.Conditions[0].Message = "no nodes available to schedule pods"
		}, `
NoNodes possible : by the scheduler's words: no nodes available to schedule pods
  Pod/ml/w: PodScheduled: no nodes available to schedule pods
`},
		"words of another": {func(w *world) {
			w.Unread["Node"] = "forbidden"
			wants(w)
			w.Pods[0].Status.Conditions[0].Message = "all nodes are unavailable"
		}, `
Unknown possible : the cluster has no node that could be judged
`},
		"no word": {func(w *world) {
			w.Unread["Node"] = "forbidden"
			wants(w)
			w.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionFalse, Message: "no nodes available to schedule pods"}}
		}, `
Unknown possible : the cluster has no node that could be judged
`},
	}.run(t)
}

// A device plugin that nobody told of a node is told of nodes where GPUs are asked, and where
// nothing says of any node that it has one; what else a pod asks is another matter.
func TestNodesThatNobodyLookedAt(t *testing.T) {
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpus", Name: "plugin"}}
	plugin.Spec.Template.Spec.Containers = []corev1.Container{{Name: view.PluginName}}
	plugin.Spec.Template.Spec.NodeSelector = map[string]string{view.GPULabels[0]: "true"}
	rows{
		"GPUs, and something else": {func(w *world) {
			w.Nodes, w.DaemonSets = append(w.Nodes, plainNode("n1")), append(w.DaemonSets, plugin)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				r := &p.Spec.Containers[0].Resources
				r.Requests["example.com/card"], r.Limits["example.com/card"] = *quantity(1), *quantity(1)
			})
		}, `
GPUStackNotOnNode possible n1: may have GPUs that nobody has looked for: the device plugin gpus/plugin goes by labels that node feature discovery writes, which is not installed: it selects nodes by label feature.node.kubernetes.io/pci-10de.present=true, which is absent
  Node/n1: no label of node feature discovery, a cloud or an autoscaler says whether its machine has a GPU
  DaemonSet/gpus/plugin: it selects nodes by label feature.node.kubernetes.io/pci-10de.present=true, which is absent
Unknown proven n1: no node offers example.com/card, which it asks: nothing has ever announced it
  Pod/ml/w: asks example.com/card, which no node offers
  Node/n1: no allocatable example.com/card
`},
	}.run(t)
}

// opener is a DaemonSet that tolerates a taint, and its pod takes a startup taint off.
func opener(name, tolerates string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: tolerates, Operator: corev1.TolerationOpExists}}
	return d
}
