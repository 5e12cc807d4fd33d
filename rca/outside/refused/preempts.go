package refused

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// givesWay is a pod of a lower priority which the same scheduler has placed; nil for none.
func givesWay(c *edit.Workload) *corev1.Pod {
	prio := corev1helpers.PodPriority(c.Pod)
	at := slices.IndexFunc(c.Cluster.State.Pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.SchedulerName == c.Pod.Spec.SchedulerName && p.DeletionTimestamp == nil && !view.Ended(p) && corev1helpers.PodPriority(p) < prio
	})
	if at < 0 {
		return nil
	}
	return c.Cluster.State.Pods[at]
}

// preempt is about a pod that finds no room while its scheduler has placed others of a lower priority: Volcano preempts nobody
// unless it is told to (volcano issue 3787).
func preempt(c *edit.Workload, ch *edit.Change) {
	p := givesWay(c)
	if p == nil || c.Queue.SchedulerName() != "volcano" {
		return
	}
	ch.Title = fmt.Sprintf("see whether volcano may preempt: %s/%s, which it has placed, has a lower priority", p.Namespace, p.Name)
	ch.Commands = append([]string{"kubectl get configmaps -A --field-selector metadata.name=volcano-scheduler-configmap -o yaml  # actions: without preempt nobody gives way; plugin gang with enableJobStarving: false lets a group preempt that has begun"}, ch.Commands...)
}
