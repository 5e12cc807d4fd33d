package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// PodTarget names a pod as the object of an action.
func PodTarget(p *corev1.Pod) diagnosis.Target {
	return diagnosis.Target{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

// StopTargets names the pods that stop by an action: what its Stops are.
func StopTargets(st *cluster.State, a diagnosis.Action) []diagnosis.Target {
	var out []diagnosis.Target
	for _, p := range Stops(st, a) {
		out = append(out, PodTarget(p))
	}
	return out
}

// NodeTarget names a node as the object of an action.
func NodeTarget(n *corev1.Node) diagnosis.Target {
	return diagnosis.Target{Kind: "Node", Name: n.Name, UID: string(n.UID)}
}
