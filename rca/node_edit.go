package rca

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// editable is a copy of the view in which pods may leave and come.
func (n *nodeView) editable() *nodeView {
	e := *n
	e.room = nil
	e.pods, e.requests, e.requested = slices.Clone(n.pods), maps.Clone(n.requests), n.requested.DeepCopy()
	return &e
}

// leaves takes a pod off an editable node.
func (n *nodeView) leaves(p *corev1.Pod) {
	n.pods = slices.DeleteFunc(n.pods, func(other *corev1.Pod) bool { return other == p })
	n.recount()
}

// comes puts a pod on an editable node.
func (n *nodeView) comes(p *corev1.Pod) {
	n.pods, n.requests[p] = append(n.pods, p), podRequests(p)
	n.recount()
}

func (n *nodeView) recount() {
	n.requested = corev1.ResourceList{}
	for _, p := range n.pods {
		add(n.requested, n.requests[p])
	}
}
