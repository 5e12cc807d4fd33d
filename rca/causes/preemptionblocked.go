package causes

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// preemptionBlocked: pods hold what is asked that the scheduler would take for it,
// but for one thing: the pod's policy is never to preempt, or they are of the same
// priority by PriorityClasses that somebody chose. Disruption budgets are no reason:
// the scheduler keeps them as long as it can and breaks them else
// (default_preemption.go, SelectVictimsOnNode).
var preemptionBlocked = Rule{ID: diagnosis.PreemptionBlocked, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if !c.NeverPreempts() && !chosenClass(c) {
		return nil // it preempts, or nobody has said who is worth more
	}
	asked, wanted := c.Wants[b.scarce]
	if alloc := n.Status.Allocatable[b.scarce]; !wanted || alloc.Cmp(asked) < 0 {
		return nil
	}
	own := corev1helpers.PodPriority(c.Pod)
	lower, below := holdersOf(c, n, b.scarce, func(prio int32) bool { return prio < own })
	if c.NeverPreempts() {
		if !below {
			return nil
		}
		return &finding{diagnosis.Proven, "held by pods of a lower priority, which its policy never preempts",
			append([]diagnosis.Evidence{diagnosis.Fact(c.podRef(), fmt.Sprintf("priority %d by class %q, preemptionPolicy Never", own, c.Pod.Spec.PriorityClassName), c.priority(own)...)}, lower...)}
	}
	if below {
		return nil // it preempts
	}
	equal, enough := holdersOf(c, n, b.scarce, func(prio int32) bool { return prio <= own })
	if !enough {
		return nil
	}
	return &finding{diagnosis.Proven, "held by pods of the same priority, which are not preempted for it",
		append([]diagnosis.Evidence{diagnosis.Fact(c.podRef(), fmt.Sprintf("priority %d by class %q", own, c.Pod.Spec.PriorityClassName), c.priority(own)...)}, equal...)}
}}

// NeverPreempts says whether the pod's preemptionPolicy is Never.
func (c *Case) NeverPreempts() bool {
	return c.Pod.Spec.PreemptionPolicy != nil && *c.Pod.Spec.PreemptionPolicy == corev1.PreemptNever
}

// chosenClass says whether the pod's priority is one that somebody gave it, and not
// the cluster's default.
func chosenClass(c *Case) bool {
	class := c.Pod.Spec.PriorityClassName
	return class != "" && !slices.ContainsFunc(c.Cluster.State.PriorityClasses, view.IsDefaultClass(class))
}

// holdersOf are the pods of such priorities that hold a resource of a node, and whether
// there is enough for the pod once they have left.
func holdersOf(c *Case, n *view.Node, name corev1.ResourceName, of func(int32) bool) ([]diagnosis.Evidence, bool) {
	left := n.Free(name)
	var out []diagnosis.Evidence
	for _, p := range n.Pods {
		q, holds := n.Requests[p][name]
		if prio := corev1helpers.PodPriority(p); holds && of(prio) && c.MayLeave(p) {
			left.Add(q)
			out = append(out, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("priority %d, holds %s of %s", prio, q.String(), name), append(view.Holding(p, name, q.String()), diagnosis.That("spec.priority", "", diagnosis.Is, strconv.Itoa(int(prio))))...))
		}
	}
	return out, left.Cmp(c.Wants[name]) >= 0
}

// preemptionUnderway: the scheduler has taken pods for this one, named it a node, and
// takes no others before they are gone (PodEligibleToPreemptOthers, "not eligible due
// to a terminating pod on the nominated node").
var preemptionUnderway = PodRule{
	ID: diagnosis.PreemptionBlocked,
	Tell: func(c *Case) *finding {
		leaving := c.Preempted()
		if len(leaving) == 0 {
			return nil
		}
		node := c.Refusal.NominatedNodeName
		evidence := []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "status.nominatedNodeName "+node, diagnosis.That("status.nominatedNodeName", "", diagnosis.Is, node))}
		if n := c.Node(node); n != nil && len(leaving) == countOf(n.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }) {
			evidence[0].Claims = append(evidence[0].Claims, diagnosis.That("count(pods.metadata.deletionTimestamp)", "", diagnosis.Is, strconv.Itoa(len(leaving))).Of(n.Ref()))
		}
		for _, p := range leaving {
			evidence = append(evidence, diagnosis.Fact(view.PodRef(p), "preempted by the scheduler, to be gone by "+p.DeletionTimestamp.UTC().Format("15:04:05"), diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Is, p.DeletionTimestamp.UTC().Format(time.RFC3339))))
		}
		says := "not gone yet"
		if p := c.Overdue(); p != nil {
			says = "not gone, though the time of " + p.Namespace + "/" + p.Name + " is over"
		}
		return &finding{diagnosis.Proven, fmt.Sprintf("%s preempted for it on %s and %s", view.CountOf(len(leaving), "pod"), node, says), evidence}
	},
}

func countOf[T any](all []T, is func(T) bool) int {
	n := 0
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

// Overdue is the first of those preempted for the pod that should have been gone long ago; nil: none.
func (c *Case) Overdue() *corev1.Pod {
	all := c.Preempted()
	if i := slices.IndexFunc(all, func(p *corev1.Pod) bool { return !view.Leaves(p, c.Cluster.State.Now) }); i >= 0 {
		return all[i]
	}
	return nil
}

// Preempted are the pods that leave the pod's nominated node for it.
func (c *Case) Preempted() []*corev1.Pod {
	n := c.Node(c.Refusal.NominatedNodeName)
	if n == nil {
		return nil
	}
	var out []*corev1.Pod
	for _, p := range n.Pods {
		taken := slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool {
			return k.Type == corev1.DisruptionTarget && k.Status == corev1.ConditionTrue && k.Reason == corev1.PodReasonPreemptionByScheduler
		})
		if taken && p.DeletionTimestamp != nil && corev1helpers.PodPriority(p) < corev1helpers.PodPriority(c.Pod) {
			out = append(out, p)
		}
	}
	return out
}
