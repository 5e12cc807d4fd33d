package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Subject is the waiting pod that something is told of, in its cluster. Unborn: it does not
// exist, and Pod is what the next would be.
type Subject struct {
	Cluster *Cluster
	Pod     *corev1.Pod
	Unborn  bool
}

// Ref names the pod as evidence does.
func (s Subject) Ref() string { return PodRef(s.Pod) }

// Claims are claims about the pod; none where it does not exist.
func (s Subject) Claims(claims ...diagnosis.Claim) []diagnosis.Claim {
	if s.Unborn {
		return nil
	}
	return s.Cluster.OfPod(s.Pod, claims...)
}
