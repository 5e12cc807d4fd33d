package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Refers says whether a reference is to this object of its namespace: by uid, and where one of
// them has none, as in a dump written by hand, by kind and name.
func Refers(r *metav1.OwnerReference, kind, name string, uid types.UID) bool {
	if r.UID != "" && uid != "" {
		return r.UID == uid
	}
	return r.Kind == kind && r.Name == name
}
