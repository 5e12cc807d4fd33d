package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/watcher/incident"
)

// Outlook is what the cluster's autoscalers have and say; read once.
func (w *Cluster) Outlook() *scaling.Outlook {
	if w.outlook == nil {
		w.outlook = scaling.Read(w.State)
	}
	return w.outlook
}

// EventsOf are the Events about an object of that kind and name; read only.
func (w *Cluster) EventsOf(kind, namespace, name string) []*corev1.Event {
	if w.events == nil {
		w.events = map[incident.Ref][]*corev1.Event{}
		for _, e := range w.State.Events {
			o := e.InvolvedObject
			ref := incident.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
			w.events[ref] = append(w.events[ref], e)
		}
	}
	return w.events[incident.Ref{Kind: kind, Namespace: namespace, Name: name}]
}
