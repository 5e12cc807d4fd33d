package queues

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Case is a waiting pod with what of its incident queues and schedulers look at.
type Case struct {
	Cluster  *view.Cluster
	Incident incident.Incident
	Pod      *corev1.Pod      // the waiting pod that stands for the others, or what the next would be
	Refusal  corev1.PodStatus // as the pod itself has it
	// Held is what makes the pods and may not begin by its queue's word; nil else.
	Held *incident.Refusal
	// Fits: the default scheduler's filters accept a node for the pod as things are.
	Fits bool

	// broken is the queue that admits nobody, once asked for; nil for none.
	broken *Broken
	asked  bool
}

func (c *Case) podRef() string { return view.PodRef(c.Pod) }

// SchedulerName is the scheduler that the pod asks for.
func (c *Case) SchedulerName() string {
	if n := c.Pod.Spec.SchedulerName; n != "" {
		return n
	}
	return corev1.DefaultSchedulerName
}
