package parts

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/view"
)

// Kit is what a cluster has of the stack's parts, read once for all its nodes.
type Kit struct {
	sets    map[Role][]*Set
	byName  map[string]*Set          // namespace/name
	unbound map[string][]*corev1.Pod // by node: of DaemonSets, and not scheduled yet
	// refused and unstarted are the newest words about a DaemonSet whose pods are refused, and
	// about a pod none of whose containers could be started: the container runtime does not
	// make its sandbox, or a volume is not there. By namespace/name.
	refused, unstarted map[string]*corev1.Event
	unhealthy          map[string]*corev1.Event // what a startup probe of a pod said last, by namespace/name
	unpulled           map[string]*corev1.Event // the newest word of why an image of a pod does not come, by namespace/name
	ready              map[string]time.Time     // since when a node is
}

// Set is a DaemonSet, ready to be asked about nodes.
type Set struct {
	*appsv1.DaemonSet
	Role     Role
	affinity nodeaffinity.RequiredNodeAffinity
}

// Asked is a DaemonSet of whatever part, or of none.
func Asked(ds *appsv1.DaemonSet) *Set {
	return &Set{DaemonSet: ds, affinity: nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: ds.Spec.Template.Spec})}
}

// Of reads a cluster's parts, at the first question for them.
func Of(w *view.Cluster) *Kit { return view.Kept(w, read) }

func read(w *view.Cluster) *Kit {
	k := &Kit{sets: map[Role][]*Set{}, byName: map[string]*Set{}, unbound: map[string][]*corev1.Pod{}, refused: map[string]*corev1.Event{}, unstarted: map[string]*corev1.Event{}, unpulled: map[string]*corev1.Event{}, unhealthy: map[string]*corev1.Event{}, ready: map[string]time.Time{}}
	for _, ds := range w.State.DaemonSets {
		r := roleOf(ds.Name, ds.Spec.Template.Labels, &ds.Spec.Template.Spec)
		if r == "" {
			continue
		}
		one := Asked(ds)
		one.Role = r
		k.sets[r], k.byName[ds.Namespace+"/"+ds.Name] = append(k.sets[r], one), one
	}
	for _, p := range w.State.Pods {
		if p.Spec.NodeName == "" && !view.Ended(p) {
			if name := view.MadeFor(p); name != "" {
				k.unbound[name] = append(k.unbound[name], p)
			}
		}
	}
	for _, e := range w.State.Events {
		k.hear(e)
	}
	for _, n := range w.State.Nodes {
		k.ready[n.Name] = readySince(n)
	}
	return k
}

// readySince is since when a node is Ready; zero where it is not, or does not say.
func readySince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Begun is when a pod was taken up by its kubelet: anew where its node has come back since. A DaemonSet's pod outlives the boots
// of its machine, and begins at its init containers each time.
func (k *Kit) Begun(p *corev1.Pod) time.Time {
	began := p.CreationTimestamp.Time
	if at := p.Status.StartTime; at != nil && at.After(began) {
		began = at.Time
	}
	if back := k.ready[p.Spec.NodeName]; back.After(began) {
		return back
	}
	return began
}

// hear keeps the newest word of each speaker about each object.
func (k *Kit) hear(e *corev1.Event) {
	by, about := map[string]*corev1.Event(nil), e.InvolvedObject
	switch {
	case e.Reason == "FailedCreate" && about.Kind == "DaemonSet":
		by = k.refused
	case (e.Reason == "FailedCreatePodSandBox" || e.Reason == "FailedMount") && about.Kind == "Pod":
		by = k.unstarted
	case e.Reason == "Failed" && about.Kind == "Pod" && strings.HasPrefix(e.Message, failedToPull):
		by = k.unpulled
	case e.Reason == "Unhealthy" && about.Kind == "Pod" && strings.HasPrefix(e.Message, startupProbe):
		by = k.unhealthy
	default:
		return
	}
	Newest(by, about.Namespace+"/"+about.Name, e)
}

// Newest keeps an Event under a key where no newer one is.
func Newest(kept map[string]*corev1.Event, key string, e *corev1.Event) {
	if old := kept[key]; old == nil || Said(e).After(Said(old)) {
		kept[key] = e
	}
}

// Said is when an Event was last seen.
func Said(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// Sets are the DaemonSets of a role.
func (k *Kit) Sets(r Role) []*Set { return k.sets[r] }

// Named is a DaemonSet by its name; nil where that is no part of the stack.
func (k *Kit) Named(namespace, name string) *Set { return k.byName[namespace+"/"+name] }

// SetOf is the DaemonSet that makes a pod; nil where none of the stack's does, or it was not read.
func (k *Kit) SetOf(p *corev1.Pod) *Set {
	if by := metav1.GetControllerOfNoCopy(p); by != nil {
		return k.Named(p.Namespace, by.Name)
	}
	return nil
}

// Pod is the pod of a role on the node; nil where there is none. It belongs to a DaemonSet:
// anybody may name a pod so.
func (k *Kit) Pod(n *view.Node, r Role) *corev1.Pod {
	for _, list := range [][]*corev1.Pod{n.Pods, k.unbound[n.Name]} {
		for _, p := range list {
			by := metav1.GetControllerOfNoCopy(p)
			if by == nil || by.Kind != "DaemonSet" {
				continue
			}
			if of := k.Named(p.Namespace, by.Name); of != nil && of.Role == r || of == nil && roleOf(by.Name, p.Labels, &p.Spec) == r {
				return p
			}
		}
	}
	return nil
}

// Refused is the newest word of the API server about a DaemonSet whose pods it refuses; nil for none.
func (k *Kit) Refused(d *Set) *corev1.Event { return k.refused[d.Namespace+"/"+d.Name] }
