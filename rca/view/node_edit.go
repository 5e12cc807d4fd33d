package view

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Editable is a copy of the view in which pods may leave and come.
func (n *Node) Editable() *Node {
	e := *n
	e.spare = nil
	e.Pods, e.Requests, e.Requested = slices.Clone(n.Pods), maps.Clone(n.Requests), n.Requested.DeepCopy()
	return &e
}

// Leaves takes a pod off an editable node.
func (n *Node) Leaves(p *corev1.Pod) {
	n.Pods = slices.DeleteFunc(n.Pods, func(other *corev1.Pod) bool { return other == p })
	n.recount()
}

// Comes puts a pod on an editable node.
func (n *Node) Comes(p *corev1.Pod) {
	n.Pods, n.Requests[p] = append(n.Pods, p), PodRequests(p)
	n.recount()
}

func (n *Node) recount() {
	n.Requested = corev1.ResourceList{}
	for _, p := range n.Pods {
		Add(n.Requested, n.Requests[p])
	}
}
