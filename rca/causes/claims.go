package causes

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Subject is the waiting pod as other rooms tell of it.
func (c *Case) Subject() view.Subject {
	return view.Subject{Cluster: c.Cluster, Pod: c.Pod, Unborn: c.Unborn}
}

// ofPod are claims about the waiting pod; none where it does not exist.
func (c *Case) ofPod(claims ...diagnosis.Claim) []diagnosis.Claim {
	return c.Subject().Claims(claims...)
}

// itAsks claims what the pod asks of a resource, or what the template does that it would be made from.
func (c *Case) itAsks(name corev1.ResourceName) []diagnosis.Claim {
	if c.Unborn {
		return c.Refused.Asked(name)
	}
	q := c.Wants[name]
	return c.ofPod(diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, q.String()))
}

// priority claims the pod's priority and its class.
func (c *Case) priority(is int32) []diagnosis.Claim {
	return c.ofPod(diagnosis.That("spec.priority", "", diagnosis.Is, strconv.Itoa(int(is))), diagnosis.That("spec.priorityClassName", "", diagnosis.Is, c.Pod.Spec.PriorityClassName))
}

// zeros claims that none is asked of resources.
func (c *Case) zeros(names []string) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(names))
	for i, name := range names {
		out[i] = diagnosis.That(diagnosis.Requests, name, diagnosis.Is, "0")
	}
	return c.ofPod(out...)
}

func (c *Case) podRef() string { return view.PodRef(c.Pod) }

// asker is the object whose selector and affinity are the pod's: itself, or what has the template that it would be made from.
// Empty where that is not read.
func (c *Case) asker() string {
	if !c.Unborn {
		return c.podRef()
	}
	owner := c.Refused.All[0].Owner
	if c.Refused.All[0].Set != nil || c.Cluster.Template(owner) == nil {
		return ""
	}
	return view.ObjectRef(owner.Kind, owner.Namespace, owner.Name)
}
