package rca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/whatif"
)

// preemptionBlocked: pods of a lower priority hold what is asked, and the pod's
// policy is never to preempt. Disruption budgets are no reason: the scheduler
// keeps them as long as it can and breaks them else (default_preemption.go).
var preemptionBlocked = Rule{ID: PreemptionBlocked, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	r, ok := insufficient(b)
	a, asked := c.askOf(r)
	if !ok || !asked || n.allocatable(a.resource) < a.count || c.Pod.Spec.PreemptionPolicy == nil || *c.Pod.Spec.PreemptionPolicy != corev1.PreemptNever {
		return nil
	}
	free := n.free(a.resource)
	left := free.Value()
	evidence := []Evidence{{c.ref(), fmt.Sprintf("priority %d by class %q, preemptionPolicy Never", corev1helpers.PodPriority(c.Pod), c.Pod.Spec.PriorityClassName)}}
	for _, p := range n.pods {
		if q, holds := n.requests[p][a.resource]; holds && corev1helpers.PodPriority(p) < corev1helpers.PodPriority(c.Pod) && c.mayLeave(p) {
			left += q.Value()
			evidence = append(evidence, Evidence{"Pod/" + p.Namespace + "/" + p.Name, fmt.Sprintf("priority %d, holds %s of %s", corev1helpers.PodPriority(p), q.String(), a.resource)})
		}
	}
	if left < a.count {
		return nil
	}
	return &finding{Proven, "held by pods of a lower priority, which its policy never preempts", evidence}
}}
