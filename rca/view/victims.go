package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/watcher/incident"
)

// SystemCritical is the lowest priority of system-cluster-critical and
// system-node-critical (pkg/apis/scheduling/types.go, SystemCriticalPriority).
const SystemCritical = 2 * 1000000000

// Traits are what of a pod matters to every incident.
type Traits struct {
	Gang     string // as GangOf names it
	Team     Team
	Stays    bool // it is never a victim, no matter which pod asks
	Priority int64
	Lost     time.Duration // of its work, were it evicted
}

// TraitsOf are a pod's traits, from the view of the cluster where it has worked them out.
func (w *Cluster) TraitsOf(p *corev1.Pod) Traits {
	if t, known := w.traits[p]; known {
		return t
	}
	return w.newTraits(p)
}

func (w *Cluster) newTraits(p *corev1.Pod) Traits {
	prio := corev1helpers.PodPriority(p)
	return Traits{Gang: GangOf(p), Team: w.TeamOf(p), Stays: ofNode(p) || incident.Reserves(p) || p.DeletionTimestamp != nil || prio >= SystemCritical, Priority: int64(prio), Lost: LostWith(p, w.State.Now)}
}

// ofNode says whether a pod belongs to its node.
func ofNode(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(p)
	return mirror || owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// Drained are the pods that kubectl drain stops on a node.
func Drained(n *Node) []*corev1.Pod { return slices.DeleteFunc(slices.Clone(n.Pods), ofNode) }

// ComesBack says whether a controller re-creates the pod after an eviction.
func ComesBack(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind != "Node"
}

// leavesWithin is how long after its time a pod that is being deleted still counts as leaving.
const leavesWithin = 5 * time.Minute

// Leaves says that a pod is being deleted and is not overdue.
func Leaves(p *corev1.Pod, now time.Time) bool {
	return p.DeletionTimestamp != nil && now.Sub(p.DeletionTimestamp.Time) < leavesWithin
}

// Overdue are the pods on the node that have some of the resource, should have ended long ago by
// their deletionTimestamp, and are still there.
func Overdue(n *Node, name corev1.ResourceName, now time.Time) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.Pods {
		if p.DeletionTimestamp != nil && !Leaves(p, now) && n.Contribution(p, name) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// workUnit is what work lost is counted in: for the seconds by which pods of one age
// differ nobody prefers a victim, let alone on a node that somebody has closed.
const workUnit = time.Minute

// LostWith is how long a pod has worked. Its start is rounded, not the span: what is
// lost with two pods differs by the same at any time, so their order stays.
func LostWith(p *corev1.Pod, now time.Time) time.Duration {
	if p.Status.StartTime == nil {
		return 0
	}
	return max(0, now.Sub(p.Status.StartTime.Truncate(workUnit)))
}

// PriorityOf is the highest of pods that leave together.
func PriorityOf(pods []*corev1.Pod) int64 {
	prio := int64(corev1helpers.PodPriority(pods[0]))
	for _, p := range pods[1:] {
		prio = max(prio, int64(corev1helpers.PodPriority(p)))
	}
	return prio
}

// Together are the pods that leave when one does: its gang, or itself alone.
func (w *Cluster) Together(p *corev1.Pod) []*corev1.Pod {
	if g := w.TraitsOf(p).Gang; g != "" && len(w.gangs[g]) > 0 {
		return w.gangs[g]
	}
	return []*corev1.Pod{p}
}

// budgets answers whether PodDisruptionBudgets allow a set of evictions.
type budgets struct{ list []budget }

type budget struct {
	pdb      *policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgets(pdbs []*policyv1.PodDisruptionBudget) *budgets {
	b := &budgets{}
	for _, p := range pdbs {
		sel, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
		if err != nil {
			sel = labels.Everything() // unreadable: assume it guards every pod of its namespace
		}
		b.list = append(b.list, budget{p, sel})
	}
	return b
}

// Guarding lists the budgets that guard a pod.
func (b *budgets) Guarding(p *corev1.Pod) []int {
	var out []int
	for i, g := range b.list {
		if p.Namespace == g.pdb.Namespace && g.selector.Matches(labels.Set(p.Labels)) {
			out = append(out, i)
		}
	}
	return out
}

// Allowed is, by budget, how many pods may go now.
func (b *budgets) Allowed() []int {
	out := make([]int, len(b.list))
	for i, g := range b.list {
		out[i] = int(g.pdb.Status.DisruptionsAllowed)
	}
	return out
}

// Refuse says whether the API server would refuse the pod's eviction now: a budget
// that is used up, or more than one budget, which the Eviction API does not support
// (pkg/registry/core/pod/storage/eviction.go, 1.37.1).
func (b *budgets) Refuse(p *corev1.Pod) bool {
	guards := b.Guarding(p)
	return len(guards) > 1 || len(guards) == 1 && b.list[guards[0]].pdb.Status.DisruptionsAllowed < 1
}

// Beyond counts the evictions that budgets do not allow now, and names the first
// such budget.
func (b *budgets) Beyond(victims []*corev1.Pod) (count int, budget string) {
	left := b.Allowed()
	for _, v := range victims {
		guards := b.Guarding(v)
		for _, g := range guards {
			if left[g]--; left[g] < 0 || len(guards) > 1 {
				count++
				budget = cmp.Or(budget, b.list[g].pdb.Namespace+"/"+b.list[g].pdb.Name)
				break
			}
		}
	}
	return count, budget
}

// Deficits are the resources a node lacks for the pod, in milli-units.
type Deficits map[corev1.ResourceName]int64

// DeficitsOf says what is missing on a node once some of its pods have left;
// ok is false when even an empty node lacks it.
func (n *Node) DeficitsOf(asked corev1.ResourceList) (Deficits, bool) {
	var out Deficits
	note := func(name corev1.ResourceName, lack int64) {
		if out == nil {
			out = Deficits{}
		}
		out[name] = max(out[name], lack)
	}
	for name, q := range asked {
		alloc := n.Status.Allocatable[name]
		if alloc.Cmp(q) < 0 {
			return nil, false
		}
		if less := n.Withheld(name, n.Pods...); less > 0 && alloc.Value()-less < q.Value() {
			return nil, false
		}
		free := n.Free(name)
		if lack := q.MilliValue() - free.MilliValue(); lack > 0 {
			note(name, lack)
		}
	}
	if n.Allocatable(corev1.ResourcePods)-int64(len(n.Pods)) < 1 {
		note(corev1.ResourcePods, 1000)
	}
	return out, true
}

// Contribution is how much of a resource is room once the pod has left, in thousandths.
func (n *Node) Contribution(p *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1000
	}
	q := n.Requests[p][name]
	return max(0, q.MilliValue()-1000*n.barren(p, name))
}

// IsDefaultClass tells the PriorityClass of a name where it is the cluster's default.
func IsDefaultClass(name string) func(*schedulingv1.PriorityClass) bool {
	return func(k *schedulingv1.PriorityClass) bool { return k.Name == name && k.GlobalDefault }
}

// Names are the resources that are lacking, in no order.
func (d Deficits) Names() []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(d))
	for name := range d {
		out = append(out, name)
	}
	return out
}
