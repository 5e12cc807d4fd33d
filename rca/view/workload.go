package view

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher/incident"
)

// Template is the pod spec the workload makes its pods from; nil when the
// workload could not be read or is a bare pod.
func (w *Cluster) Template(of incident.Ref) *corev1.PodSpec {
	owner, ok := w.State.Owner(of.Kind, of.Namespace, of.Name)
	if !ok {
		return nil
	}
	switch o := owner.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	}
	return nil
}

// IncidentOf is the incident that a waiting pod is part of.
func (w *Cluster) IncidentOf(p *corev1.Pod) string {
	return incident.ID(w.WorkloadOf(p), incident.Requests(p))
}

// WorkloadOf is whose pod it is.
func (w *Cluster) WorkloadOf(p *corev1.Pod) incident.Ref { return incident.Topmost(p, w.State.Owner) }
