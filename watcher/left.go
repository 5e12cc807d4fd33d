package watcher

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owner is the Lookup of the watcher's own owners. One that was deleted a moment
// ago is still found: it goes before its pods do.
func (w *Watcher) owner(kind, namespace, name string) (metav1.Object, bool) {
	in := w.owners[kind]
	if in == nil {
		return nil, false
	}
	if o, ok, err := in.GetStore().GetByKey(namespace + "/" + name); err == nil && ok {
		m, ok := o.(metav1.Object)
		return m, ok
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, former := range w.former {
		if o, ok := former[Ref{kind, namespace, name}]; ok {
			return o, true
		}
	}
	return nil, false
}

// dated counts the pods that left the incident among its newest: with one pod
// less it tells of a later moment, not of the one before that pod came.
func (w *Watcher) dated(i Incident) Incident {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, version := range []string{w.left[i.ID], w.known[i.ID].Newest} {
		if newer(version, i.Newest) {
			i.Newest = version
		}
	}
	return i
}

func (w *Watcher) mark(id, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if newer(version, w.left[id]) {
		w.left[id] = version
	}
}

// forget drops what was noted of incidents that are over: whoever waits again
// has a newer version than those who left.
func (w *Watcher) forget(waiting map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.left {
		if !waiting[id] {
			delete(w.left, id)
		}
	}
}

// noteChanged remembers when a waiting pod became something else.
func (w *Watcher) noteChanged(old, changed *corev1.Pod) {
	if waits(old) {
		w.mark(IncidentID(Topmost(old, w.owner), Requests(old)), changed.ResourceVersion)
	}
}

// noteDeleted remembers when a waiting pod went, and who owned what.
func (w *Watcher) noteDeleted(kind string, o any) {
	pod, isPod := o.(*corev1.Pod)
	if isPod {
		before := *pod
		before.DeletionTimestamp = nil // the last thing told of it may be that it is being deleted
		w.noteChanged(&before, pod)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := o.(metav1.Object); ok && w.owners[kind] != nil {
		w.former[0][Ref{kind, m.GetNamespace(), m.GetName()}] = m
	}
	if isPod {
		w.gone[pod.UID] = true
	}
}

// turn forgets, at a sweep, who was deleted before it.
func (w *Watcher) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.gone)
	w.former = [2]map[Ref]metav1.Object{{}, w.former[0]}
}
