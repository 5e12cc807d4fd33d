package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher"
)

// IncidentOf is the incident that a waiting pod is part of.
func (w *Cluster) IncidentOf(p *corev1.Pod) string {
	return watcher.IncidentID(w.WorkloadOf(p), watcher.Requests(p))
}

// WorkloadOf is whose pod it is.
func (w *Cluster) WorkloadOf(p *corev1.Pod) watcher.Ref { return watcher.Topmost(p, w.State.Owner) }
