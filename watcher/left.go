package watcher

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/watcher/incident"
)

// owner is the Lookup of the watcher's own owners. One that was deleted a moment
// ago is still found: it goes before its pods do.
func (w *Watcher) owner(kind, namespace, name string) (metav1.Object, bool) {
	in := w.owners[kind]
	switch {
	case kind == "Pod": // the leader of a group owns what makes its workers
		in = w.pods
	case w.held[kind] != nil:
		in = w.held[kind]
	}
	if in == nil {
		return nil, false
	}
	for _, key := range []string{namespace + "/" + name, name} { // the second: of no namespace
		if o, ok, err := in.GetStore().GetByKey(key); err == nil && ok {
			m, ok := o.(metav1.Object)
			return m, ok
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, former := range w.former {
		if o, ok := former[incident.Ref{Kind: kind, Namespace: namespace, Name: name}]; ok {
			return o, true
		}
	}
	return nil, false
}

// dated counts the pods that left the incident among its newest: with one pod
// less it tells of a later moment, not of the one before that pod came. Pods that
// never existed are missed since the first refusal, whose event may be gone by now.
func (w *Watcher) dated(i incident.Incident) incident.Incident {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.known[i.ID]
	for _, version := range []string{w.left[i.ID], before.Newest} {
		if incident.Newer(version, i.Newest) {
			i.Newest = version
		}
	}
	if i.Missing > 0 && before.Missing > 0 && len(i.Pods)+len(before.Pods) == 0 {
		if before.Since.Before(i.Since) {
			i.Since = before.Since
		}
		if before.Resembles(i) { // who has no pods writes its status without anything new
			i.Newest = before.Newest
		}
	}
	return i
}

// settled is a known incident that waits no more. Where its owners tell that, and
// not a pod, the moment is that of their newest version.
func (w *Watcher) settled(before incident.Incident) incident.Incident {
	i := before.AsResolved()
	if before.Missing == 0 && !slices.ContainsFunc(before.Pods, func(p incident.PodRef) bool { return strings.HasPrefix(p.Reason, incident.FailedPrefix) }) {
		return i
	}
	for _, k := range w.makers().All() {
		if v := k.GetResourceVersion(); incident.Newer(v, i.Newest) && incident.Topmost(k.Child(), w.owner) == before.Workload {
			i.Newest = v
		}
	}
	for _, h := range w.makers().Held {
		if incident.Newer(h.ResourceVersion, i.Newest) && incident.Topmost(h.Child(), w.owner) == before.Workload {
			i.Newest = h.ResourceVersion
		}
	}
	return i
}

// makers is what the informers know of those who make pods.
func (w *Watcher) makers() incident.Makers {
	var held []*incident.Held
	for _, kind := range slices.Sorted(maps.Keys(w.held)) {
		held = append(held, listed[*incident.Held](w.held[kind])...)
	}
	return incident.Makers{Held: held, AllPods: true, AllJobs: true, ReplicaSets: listed[*appsv1.ReplicaSet](w.owners["ReplicaSet"]), Deployments: listed[*appsv1.Deployment](w.owners["Deployment"]),
		StatefulSets: listed[*appsv1.StatefulSet](w.owners["StatefulSet"]), DaemonSets: listed[*appsv1.DaemonSet](w.owners["DaemonSet"]),
		Jobs: listed[*batchv1.Job](w.owners["Job"]), Events: listed[*corev1.Event](w.refusing[kindEvent]), LimitRanges: listed[*corev1.LimitRange](w.refusing[kindLimitRange])}
}

func listed[T any](in cache.SharedIndexInformer) []T {
	objs := in.GetStore().List()
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func (w *Watcher) mark(id, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if incident.Newer(version, w.left[id]) {
		w.left[id] = version
	}
}

// forget drops what was noted of incidents that are over: a pod that waits
// again has a newer version than those that left.
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
	if w.waits(old) {
		w.mark(incident.ID(incident.Topmost(old, w.owner), incident.Requests(old)), changed.ResourceVersion)
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
	if m, ok := o.(metav1.Object); ok {
		if h, ok := o.(*incident.Held); ok { // another of its name tells of a later moment
			for _, r := range (incident.Makers{Held: []*incident.Held{h}, AllPods: true}).Refusals(nil, w.owner) {
				w.mark(incident.ID(incident.Topmost(r.Pod, w.owner), incident.Requests(r.Pod)), r.Version)
			}
		}
		if k, ok := incident.MakerOf(m); ok && k.Wants > k.Has { // one made again under its name tells of a later moment
			next := w.makers().Next(k)
			w.mark(incident.ID(incident.Topmost(next, w.owner), incident.Requests(next)), k.GetResourceVersion())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := o.(metav1.Object); ok && (w.owners[kind] != nil || w.held[kind] != nil) {
		w.former[0][incident.Ref{Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName()}] = m
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
	w.former = [2]map[incident.Ref]metav1.Object{{}, w.former[0]}
}
