package edit

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/view"
)

// rollSet fills in how a StatefulSet replaces its pods: as many at a time as it may lack, and
// only those that its partition lets a new template reach. Who waits below the partition is
// made again as it is (newVersionedStatefulSetPod in stateful_set_utils.go), so a person has to
// lower it first: whether those in front of it may change is what the partition was set for.
func (c *Workload) rollSet(ch *Change, r *Rolling, set *appsv1.StatefulSet) {
	if set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType {
		r.AtOnce, r.Wanted = true, int(ptr.Deref(set.Spec.Replicas, 1))
		return
	}
	inOrder := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	first := view.FirstRolled(set)
	if lowest, lacks := c.lacking(set); lowest < first && (inOrder || !lacks) {
		ch.Manual, first = true, lowest
		ch.Commands = append(ch.Commands, fmt.Sprintf(`kubectl -n %s patch %s --type=strategic -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}'  # pods below its partition keep the template that they have`,
			set.Namespace, c.WorkloadName(), lowest-view.FirstOrdinal(set)))
	}
	r.InTurn, r.InOrder, r.Wanted = true, inOrder, max(0, endOrdinal(set)-first)
	bounded := false
	r.Unavailable, bounded = view.MayLack(set)
	r.ByOrdinal = !inOrder && !bounded
	if r.Unavailable > 1 {
		r.How += fmt.Sprintf(" %d at a time", r.Unavailable)
	}
	if first > view.FirstOrdinal(set) {
		r.How += fmt.Sprintf(" from ordinal %d on", first)
	}
	below := func(p *corev1.Pod) bool { return view.Ordinal(p) < first }
	for _, p := range r.Running {
		if below(p) && !view.Ready(p) {
			r.Broken++
		}
	}
	r.Running = slices.DeleteFunc(r.Running, below)
	for _, p := range r.Pending {
		if below(p) {
			r.Behind = append(r.Behind, p)
		}
	}
	r.Pending = slices.DeleteFunc(r.Pending, below)
	byOrdinal(r.Running)
	byOrdinal(r.Pending)
	switch {
	case set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		r.Wanted -= len(r.Running)
		r.Running, ch.Manual = nil, true
		c.deleteWaiting(ch, "with OnDelete the StatefulSet leaves that to people")
	case inOrder && !c.Unborn:
		// In order it waits for the pod that waits, and replaces none meanwhile.
		ch.Manual = true
		c.deleteWaiting(ch, "the StatefulSet waits for it and does not replace it")
	}
}

// lacking is the lowest ordinal of the set without a running pod, and whether there is one
// that a new template reaches.
func (c *Workload) lacking(set *appsv1.StatefulSet) (lowest int, reached bool) {
	run := map[int]bool{}
	for _, p := range c.RunningPods() {
		run[view.Ordinal(p)] = true
	}
	lowest = endOrdinal(set)
	for n := lowest - 1; n >= view.FirstOrdinal(set); n-- {
		if !run[n] {
			lowest, reached = n, reached || n >= view.FirstRolled(set)
		}
	}
	return lowest, reached
}

// endOrdinal is one above the highest ordinal of the set.
func endOrdinal(set *appsv1.StatefulSet) int {
	return view.FirstOrdinal(set) + int(ptr.Deref(set.Spec.Replicas, 1))
}

// byOrdinal sorts a StatefulSet's pods as it replaces them: the highest ordinal first.
func byOrdinal(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return view.Ordinal(b) - view.Ordinal(a) })
}

// StillToCome is how many pods an ordered StatefulSet wants and has not running: the one
// that waits, and those that it makes after that; 0 for other workloads.
func (c *Workload) StillToCome() int {
	owner, _ := c.Cluster.State.Owner(c.Incident.Workload.Kind, c.Incident.Workload.Namespace, c.Incident.Workload.Name)
	set, ok := owner.(*appsv1.StatefulSet)
	if !ok || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return 0
	}
	return int(ptr.Deref(set.Spec.Replicas, 1)) - len(c.RunningPods())
}
