package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
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

// Whom nodes do not take: by taints, a cordon, their state.
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
NodeNotReady proven n1: not ready
  Node/n1: taint karpenter.sh/unregistered:NoSchedule
`},
		"a cordon, since when and by whom": {func(w *world) {
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
				n.Annotations[diagnosis.OperationAnnotation] = string(diagnosis.MustJSON(diagnosis.Operation{Quarantined: "GPU 1 is sick"}))
			})
			wants(w)
		}, `
NodeCordoned proven n1: cordoned
  Node/n1: spec.unschedulable is true, kept so by unpend: GPU 1 is sick
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

func spread(key string, hard bool) corev1.TopologySpreadConstraint {
	when := corev1.ScheduleAnyway
	if hard {
		when = corev1.DoNotSchedule
	}
	return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}
}

func term(app, key string, namespaces ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Namespaces: namespaces}
}

func apart(terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func near(terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func app(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = name } }

func of(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

// Where the pods that run keep the pod from.
func TestPodsBesideOthers(t *testing.T) {
	const host = "kubernetes.io/hostname"
	zoned := func(name, zone string) sim.Node {
		return sim.Node{Name: name, Model: "L4", GPUs: 4, Labels: map[string]string{"zone": zone}}
	}
	rows{
		"spread over a label": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.Nodes = append(w.Nodes, plainNode("n2"))
			w.Nodes[1].Labels["zone"] = "b"
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("w"))
			w.pod("w", "", "nvidia.com/gpu", 1, app("w"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread("zone", true), spread(host, false)}
			})
		}, `
TopologySpreadConflict proven n1: topology spread leaves it out
  Node/n1: node(s) didn't match pod topology spread constraints
  Pod/ml/w: spread over zone with at most 1 apart; the node has zone="a"
Unknown proven n2: no GPU on the node
  Node/n2: no label, capacity or report speaks of a GPU
`},
		"apart from a pod of the node, by its own term": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("other", "n1", "nvidia.com/gpu", 1, app("other"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("nobody", host)))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from ml/h
`},
		"apart from two": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("g", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("h", "zone")))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname) and apart from app=h (zone)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Pod/ml/w: has to be apart from app=h (zone)
  Node/n1: kept apart from 2 pods (ml/h, …)
`},
		"apart by the term of the other": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, apart(term("w", host)))
			w.pod("w", "", "nvidia.com/gpu", 1, app("w"))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out
  Node/n1: node(s) didn't satisfy existing pods anti-affinity rules
  Node/n1: kept apart from ml/h
`},
		"apart from a pod of another node of the zone": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "a"))
			w.pod("h", "n2", "nvidia.com/gpu", 1, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", "zone")))
		}, `
PodAffinityConflict proven n1,n2: pod (anti-)affinity rules leave it out: it has to be apart from app=h (zone)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (zone)
  Node/n2: node(s) didn't match pod anti-affinity rules
  Node/n2: kept apart from ml/h
`},
		"a term is about its pod's own namespace": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("g", "n1", "nvidia.com/gpu", 1, app("g"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("g", host)))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=g (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=g (kubernetes.io/hostname)
  Node/n1: kept apart from ml/g
`},
		"or about those that it names": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host, "other")))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from other/h
`},
		"or about those with labels, or all": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "a"))
			w.Namespaces = append(w.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "x"}}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "third"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}})
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("third", "n2", "nvidia.com/gpu", 1, app("h"), of("third"))
			w.pod("g", "n2", "nvidia.com/gpu", 1, app("g"), of("third"))
			some, all := term("h", host), term("g", host)
			some.NamespaceSelector, all.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, &metav1.LabelSelector{}
			w.pod("w", "", "nvidia.com/gpu", 1, apart(some, all))
		}, `
PodAffinityConflict proven n1,n2: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from other/h
  Node/n2: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=g (kubernetes.io/hostname)
  Node/n2: kept apart from third/g
`},
		"near one that is not there": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "b"))
			w.pod("h", "n2", "nvidia.com/gpu", 4, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, near(term("h", "zone")))
		}, `
GPUsInUse proven n2: all whole GPUs are held
  Node/n2: allocatable nvidia.com/gpu=4, requested 4
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be near app=h (zone)
  Node/n1: node(s) didn't match pod affinity rules
  Pod/ml/w: has to be near app=h (zone)
`},
		"near any pod, where the label is missing": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("h", "n1", "", 0, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, near(corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be near all pods (zone)
  Node/n1: node(s) didn't match pod affinity rules
  Pod/ml/w: has to be near all pods (zone)
`},
	}.run(t)
}

// Which labels are asked for in vain, and what comes nearest.
func TestSelectors(t *testing.T) {
	affinity := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	expr := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	labels := func(name string, l map[string]string) sim.Node { return sim.Node{Name: name, Model: "L4", Labels: l} }
	selector := func(l map[string]string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeSelector = l } }
	rows{
		"a selector, with the nearest of all values": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"model": "A100-40"}))
			w.gpuNode(labels("n2", map[string]string{"model": "b200", "zone": "a"}))
			w.pod("w", "", "nvidia.com/gpu", 1, selector(map[string]string{"zone": "b", "model": "a100_80gb", "absent": "x"}))
		}, `
NodeSelectorMismatch proven n1,n2: selector absent=x, model=a100_80gb (nearest: "A100-40"), zone=b (nearest: "a") does not match
  Node/n1: label absent is absent, x was asked
  Node/n1: label model is "A100-40", a100_80gb was asked
  Node/n1: label zone is absent, b was asked
  Node/n2: label absent is absent, x was asked
  Node/n2: label model is "b200", a100_80gb was asked
  Node/n2: label zone is "a", b was asked
`},
		"an affinity by each operator": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"memory": "40", "kind": "old", "big": "yes"}))
			w.gpuNode(labels("n2", map[string]string{"memory": "24", "kind": "old", "big": "no"}))
			all := corev1.NodeSelectorTerm{}
			for _, e := range []corev1.NodeSelectorTerm{expr("memory", corev1.NodeSelectorOpGt, "60"), expr("memory", corev1.NodeSelectorOpLt, "20"), expr("kind", corev1.NodeSelectorOpNotIn, "old"), expr("big", corev1.NodeSelectorOpDoesNotExist), expr("small", corev1.NodeSelectorOpExists)} {
				all.MatchExpressions = append(all.MatchExpressions, e.MatchExpressions...)
			}
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(all))
		}, `
NodeSelectorMismatch proven n1,n2: selector memory>60 (nearest: "40"), memory<20 (nearest: "24"), kind!=old, no big, small=any value does not match
  Node/n1: label memory is "40", more than 60 was asked
  Node/n1: label memory is "40", less than 20 was asked
  Node/n1: label kind is "old", not old was asked
  Node/n1: label big is "yes", none was asked
  Node/n1: label small is absent, any value was asked
  Node/n2: label memory is "24", more than 60 was asked
  Node/n2: label memory is "24", less than 20 was asked
  Node/n2: label kind is "old", not old was asked
  Node/n2: label big is "no", none was asked
  Node/n2: label small is absent, any value was asked
`},
		"of alternatives the one that comes nearest": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"a": "1"}))
			two := expr("b", corev1.NodeSelectorOpExists)
			two.MatchExpressions = append(two.MatchExpressions, expr("c", corev1.NodeSelectorOpExists).MatchExpressions...)
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{}, two, expr("a", corev1.NodeSelectorOpIn, "2", "3")))
		}, `
NodeSelectorMismatch proven n1: selector a=2|3 (nearest: "1") does not match, nor its alternatives
  Node/n1: label a is "1", 2|3 was asked
`},
		"a selector beside an affinity with alternatives": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"a": "1"}))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(expr("a", corev1.NodeSelectorOpIn, "1"), expr("a", corev1.NodeSelectorOpIn, "2")), selector(map[string]string{"b": "1"}))
		}, `
NodeSelectorMismatch proven n1: selector b=1 does not match
  Node/n1: label b is absent, 1 was asked
`},
		"nodes by their names": {func(w *world) {
			w.gpuNode(labels("n1", nil))
			w.gpuNode(labels("n2", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n3"}}}}))
		}, `
NodeSelectorMismatch proven n1,n2: selector metadata.name=n3 does not match
  Node/n1: label metadata.name is "n1", n3 was asked
  Node/n2: label metadata.name is "n2", n3 was asked
`},
		"terms that match nothing": {func(w *world) {
			w.gpuNode(labels("n1", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{}))
		}, `
NodeSelectorMismatch proven n1: node affinity does not match
  Node/n1: the required node affinity does not match its labels
`},
		"nodes that are alike are told alike, and each for itself": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"zone": "a"}))
			w.gpuNode(labels("n2", map[string]string{"zone": "a"}))
			w.gpuNode(labels("n3", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, selector(map[string]string{"zone": "ab"}))
		}, `
NodeSelectorMismatch proven n1,n2,n3: selector zone=ab (nearest: "a") does not match
  Node/n1: label zone is "a", ab was asked
  Node/n2: label zone is "a", ab was asked
  Node/n3: label zone is absent, ab was asked
`},
	}.run(t)
}

// What is said of volumes, and how sure that is.
func TestVolumes(t *testing.T) {
	uses := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch"}, {Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	claim := func(name, namespace, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	}
	rows{
		"a claim that does not exist": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "other", ""), claim("else", "ml", ""))
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict proven n1: its volume cannot be had there: persistentvolumeclaim "data" not found
  Node/n1: persistentvolumeclaim "data" not found
  PersistentVolumeClaim/ml/data: does not exist
  Node/n1: looking up PVC ml/data: persistentvolumeclaim "data" not found
`},
		"claims that were not read": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.Unread["PersistentVolumeClaim"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict possible n1: its volume cannot be had there: persistentvolumeclaim "data" not found
  Node/n1: persistentvolumeclaim "data" not found
  Node/n1: looking up PVC ml/data: persistentvolumeclaim "data" not found
`},
		"a volume that is lost, and who uses the claim": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "ml", "pv-1"))
			w.pod("h", "n1", "", 0, uses("data"))
			w.pod("x", "n1", "", 0, uses("else"))
			w.pod("o", "n1", "", 0, uses("data"), of("other"))
			w.pod("v", "", "", 0, uses("data"))
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict proven n1: its volume cannot be had there: pod has unbound immediate PersistentVolumeClaims
  Node/n1: pod has unbound immediate PersistentVolumeClaims
  PersistentVolumeClaim/ml/data: is Bound, volume pv-1
  Pod/ml/h: uses PersistentVolumeClaim data on n1
  Node/n1: persistentvolume "pv-1" not found
`},
		"volumes that were not read": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "ml", "pv-1"))
			w.Unread["PersistentVolume"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict possible n1: its volume cannot be had there: pod has unbound immediate PersistentVolumeClaims
  Node/n1: pod has unbound immediate PersistentVolumeClaims
  PersistentVolumeClaim/ml/data: is Bound, volume pv-1
  Node/n1: persistentvolume "pv-1" not found
`},
	}.run(t)
}

// An autoscaler's last word counts, whoever it is.
func TestAutoscalers(t *testing.T) {
	event := func(w *world, by, reason string, ago time.Duration, edits ...func(*corev1.Event)) {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: reason}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "w"}, Reason: reason, Message: by + " said", ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}}
		for _, edit := range edits {
			edit(e)
		}
		w.Events = append(w.Events, e)
	}
	start := func(w *world) {
		w.gpuNode(l4("n1", 1))
		w.pod("h", "n1", "nvidia.com/gpu", 1)
		w.pod("w", "", "nvidia.com/gpu", 1)
	}
	rows{
		"it brings a node": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "NotTriggerScaleUp", 3*time.Minute)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 2*time.Minute)
			event(w, "karpenter", "NotTriggerScaleUp", time.Minute)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: TriggeredScaleUp: cluster-autoscaler said
`},
		"it cannot": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 2*time.Minute)
			event(w, "", "NotTriggerScaleUp", 9*time.Minute, func(e *corev1.Event) {
				e.Source.Component, e.Series = "cluster-autoscaler", &corev1.EventSeries{LastObservedTime: metav1.MicroTime{Time: rcatest.Noon}}
			})
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
AutoscalerCannotHelp likely : the cluster autoscaler looked and cannot help
  Pod/ml/w: NotTriggerScaleUp:  said
`},
		"Karpenter brings one": {func(w *world) {
			start(w)
			event(w, "karpenter", "Nominated", time.Hour, func(e *corev1.Event) { e.EventTime = metav1.MicroTime{Time: rcatest.Noon} })
			event(w, "cluster-autoscaler", "NotTriggerScaleUp", time.Minute)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: Nominated: karpenter said
AutoscalerCannotHelp likely : the cluster autoscaler looked and cannot help
  Pod/ml/w: NotTriggerScaleUp: cluster-autoscaler said
`},
		"words about others, and of others": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Name = "v" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.UID = "before" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Namespace = "x" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Kind = "Job" })
			event(w, "cluster-autoscaler", "Nominated", 0)
			event(w, "someone", "TriggeredScaleUp", 0)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"words without a uid": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.UID = "" })
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: TriggeredScaleUp: cluster-autoscaler said
`},
	}.run(t)
}
