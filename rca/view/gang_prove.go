package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher/incident"
)

// IncidentOf is the incident that a waiting pod is part of.
func (w *Cluster) IncidentOf(p *corev1.Pod) string {
	return incident.IncidentID(w.WorkloadOf(p), incident.Requests(p))
}

// WorkloadOf is whose pod it is.
func (w *Cluster) WorkloadOf(p *corev1.Pod) incident.Ref { return incident.Topmost(p, w.State.Owner) }
