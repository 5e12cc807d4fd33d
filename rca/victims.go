package rca

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// systemCritical is the lowest priority of system-cluster-critical and
// system-node-critical (pkg/apis/scheduling/types.go, SystemCriticalPriority).
const systemCritical = 2 * 1000000000

// traits are what of a pod matters to every incident.
type traits struct {
	gang  string // as gangOf names it
	stays bool   // it is never a victim, whoever asks
	prio  int64
	lost  time.Duration // of its work, were it evicted
}

// traitsOf are looked up where the view of the cluster has worked them out.
func (w *world) traitsOf(p *corev1.Pod) traits {
	if t, known := w.traits[p]; known {
		return t
	}
	return newTraits(p, w.state.Now)
}

func newTraits(p *corev1.Pod, now time.Time) traits {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(p)
	ofNode := owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
	prio := corev1helpers.PodPriority(p)
	return traits{gang: gangOf(p), stays: mirror || ofNode || p.DeletionTimestamp != nil || prio >= systemCritical, prio: int64(prio), lost: lostWith(p, now)}
}

// comesBack says whether a controller re-creates the pod after an eviction. A
// pod of a Job that may not fail any more is not counted on.
func comesBack(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind != "Node"
}

// victimCost is compared lexicographically: evictions beyond what their budgets
// allow, whether one of them may be working, highest priority, sum of priorities,
// number, work lost.
type victimCost struct {
	beyond       int
	working      int // 1: not all of them are known to be idle
	highest, sum int64
	number       int
	lost         time.Duration
}

func (a victimCost) compare(b victimCost) int {
	return cmp.Or(cmp.Compare(a.beyond, b.beyond), cmp.Compare(a.working, b.working), cmp.Compare(a.highest, b.highest), cmp.Compare(a.sum, b.sum), cmp.Compare(a.number, b.number), cmp.Compare(a.lost, b.lost))
}

// noVictims costs less than any set.
var noVictims = victimCost{highest: -1 << 40}

// with adds pods that leave together: a pod, or a gang, which counts once.
func (a victimCost) with(pods []*corev1.Pod, now time.Time) victimCost {
	lost := time.Duration(0)
	for _, p := range pods {
		lost += lostWith(p, now)
	}
	return a.plusOne(priorityOf(pods), lost)
}

func (a victimCost) plusOne(prio int64, lost time.Duration) victimCost {
	a.highest = max(a.highest, prio)
	a.sum += prio
	a.number++
	a.lost += lost
	return a
}

// workUnit is what work lost is counted in: for the seconds by which pods of one age
// differ nobody prefers a victim, let alone on a node that somebody has closed.
const workUnit = time.Minute

// lostWith is how long a pod has worked. Its start is rounded, not the span: what is
// lost with two pods differs by the same at any time, so their order stays.
func lostWith(p *corev1.Pod, now time.Time) time.Duration {
	if p.Status.StartTime == nil {
		return 0
	}
	return max(0, now.Sub(p.Status.StartTime.Truncate(workUnit)))
}

// priorityOf is the highest of pods that leave together.
func priorityOf(pods []*corev1.Pod) int64 {
	prio := int64(corev1helpers.PodPriority(pods[0]))
	for _, p := range pods[1:] {
		prio = max(prio, int64(corev1helpers.PodPriority(p)))
	}
	return prio
}

// together are the pods that leave when one does: its gang, or itself alone.
func (w *world) together(p *corev1.Pod) []*corev1.Pod {
	if g := w.traitsOf(p).gang; g != "" && len(w.gangs[g]) > 0 {
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

// guarding lists the budgets that guard a pod.
func (b *budgets) guarding(p *corev1.Pod) []int {
	var out []int
	for i, g := range b.list {
		if p.Namespace == g.pdb.Namespace && g.selector.Matches(labels.Set(p.Labels)) {
			out = append(out, i)
		}
	}
	return out
}

// allowed is, by budget, how many pods may go now.
func (b *budgets) allowed() []int {
	out := make([]int, len(b.list))
	for i, g := range b.list {
		out[i] = int(g.pdb.Status.DisruptionsAllowed)
	}
	return out
}

// refuse says whether the API server would refuse the pod's eviction now: a budget
// that is used up, or more than one budget, which the Eviction API does not support
// (pkg/registry/core/pod/storage/eviction.go, 1.37.1).
func (b *budgets) refuse(p *corev1.Pod) bool {
	guards := b.guarding(p)
	return len(guards) > 1 || len(guards) == 1 && b.list[guards[0]].pdb.Status.DisruptionsAllowed < 1
}

// beyond counts the evictions that budgets do not allow now, and names the first
// such budget.
func (b *budgets) beyond(victims []*corev1.Pod) (count int, budget string) {
	left := b.allowed()
	for _, v := range victims {
		guards := b.guarding(v)
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

// deficits are the resources a node lacks for the pod, in milli-units.
type deficits map[corev1.ResourceName]int64

// deficitsOf says what is missing on a node once some of its pods have left;
// ok is false when even an empty node lacks it.
func (n *nodeView) deficitsOf(asked corev1.ResourceList) (deficits, bool) {
	var out deficits
	note := func(name corev1.ResourceName, lack int64) {
		if out == nil {
			out = deficits{}
		}
		out[name] = max(out[name], lack)
	}
	for name, q := range asked {
		alloc := n.Status.Allocatable[name]
		if alloc.Cmp(q) < 0 {
			return nil, false
		}
		free := n.free(name)
		if lack := q.MilliValue() - free.MilliValue(); lack > 0 {
			note(name, lack)
		}
	}
	if n.allocatable(corev1.ResourcePods)-int64(len(n.pods)) < 1 {
		note(corev1.ResourcePods, 1000)
	}
	return out, true
}

func (n *nodeView) contribution(p *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1000
	}
	q := n.requests[p][name]
	return q.MilliValue()
}
