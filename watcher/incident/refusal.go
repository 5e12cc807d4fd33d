package incident

import (
	"cmp"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal says that an object wants pods which do not exist because the API server
// refused them (quota, a LimitRange, validation, a webhook), or because a queue has not let
// it begin.
type Refusal struct {
	Owner   Ref         // the object that makes the pods, not its topmost owner
	Pod     *corev1.Pod // as the next one would be sent to the scheduler
	Wants   int         // pods that the owner wants now
	Missing int         // how many of them do not exist
	// Set is which of its owner's sets lacks pods; nil where that makes pods of one template. Later are those
	// behind it that lack pods, too, and are not tried before, where it makes one after the other.
	Set     *Set
	Later   []Later
	Since   time.Time
	Version string // the owner's resourceVersion
	// Says is what the owner's status, or the newest event, quotes of the API server.
	Says string
	// Unheard: nobody has acted on the owner since it was made, long ago.
	Unheard bool
	// Held: a queue has not let it begin, else the API server refused the pods. Queue is which, as it
	// names it itself; empty where it names none.
	Held  bool
	Queue string
	// Behind is what owns it and was let begin, though it was not itself; nil for most.
	Behind *metav1.OwnerReference
	// Named is what owns it, names the queue, and is not suspended; nil where it names one itself, or nobody does.
	Named *Ref
	// Group is the PodGroup of the pods, where their own scheduler's queue holds it; empty where
	// another's does, or none.
	Group string
	// Ungrouped: nothing of its queue that is known of stands for the owner.
	Ungrouped bool
}

// Set is where an object that makes pods of several templates has one of them.
type Set struct {
	Of       Ref    // the object that has it
	At       string // its path in the object
	Within   string // below that, what has the template; empty where that has it itself
	Template corev1.PodTemplateSpec
	// Wants and Has are paths to how many pods of it the object wants, and to how many there are; empty
	// where no field alone says that.
	Wants, Has string
}

// Later is a set whose pods are made after those of another.
type Later struct {
	*Set
	Name    string
	Count   int // pods that it wants
	Missing int
}

// told is what the events of one object say of pods that it could not make.
type told struct {
	first, last time.Time
	says        string
	role        string // that the newest is about, where it says one
}

// Refusals lists, by owner, who lacks pods because the API server refused them, behind those who
// makes pods of several templates, and then who was not let begin by a queue that holds objects of
// any kind. A ReplicaSet's own status tells it. Of other kinds an event does, unless a pod was
// made after it; that pods are missing is read from spec and status, never from
// the event, and an event of an object that does not exist, or of its predecessor
// of the same name, tells nothing.
func (m Makers) Refusals(pods []*corev1.Pod, lookup Lookup) []Refusal {
	var out []Refusal
	events := sync.OnceValue(m.told) // nobody lacks anything, most of the time
	var newest map[Ref]time.Time
	kueue := sync.OnceValue(m.kueue)
	for _, k := range m.All() {
		n, held, behind := k.missing(), k.queue != "", (*metav1.OwnerReference)(nil)
		var named *Ref
		if k.aside > 0 && k.GetDeletionTimestamp() == nil {
			held, behind = kueue().holds(k, lookup)
			if h := m.named(k, kueue(), lookup); !held && h != nil {
				of := h.ref()
				held, named, k.queue = true, &of, h.Labels[QueueLabel]
			}
			if held {
				n, k.Wants = k.aside, k.aside
			}
		}
		if n == 0 {
			continue
		}
		if newest == nil {
			newest = newestPods(pods)
		}
		since, says := k.failing, k.says
		if since.IsZero() {
			e, ok := eventOf(k, events()[k.ref()])
			if !ok || e.last.Before(newest[k.ref()]) {
				continue
			}
			since, says = e.first, e.says
		}
		out = append(out, Refusal{Owner: k.ref(), Pod: m.Next(k), Wants: k.Wants, Missing: n, Since: since, Version: k.GetResourceVersion(), Says: says, Held: held, Queue: k.queue, Behind: behind, Named: named})
	}
	lacking := append(m.lacking(pods, events), m.behind(pods, kueue, lookup)...)
	begun := sync.OnceValue(func() map[Ref]bool { // few clusters have anybody who waits in a queue
		of := beginnersOf(pods, lookup)
		for _, r := range lacking {
			of[r.Owner] = true
		}
		return of
	})
	return append(append(out, lacking...), m.held(begun, events)...)
}

// eventOf is what is told of this very object: by its uid where the event has one.
func eventOf(o metav1.Object, byUID map[string]told) (told, bool) {
	e, ok := byUID[string(o.GetUID())]
	if !ok && o.GetUID() != "" {
		e, ok = byUID[""]
	}
	return e, ok && !e.last.Before(o.GetCreationTimestamp().Time)
}

// told folds the events by object and uid.
func (m Makers) told() map[Ref]map[string]told {
	out := map[Ref]map[string]told{}
	for _, e := range m.Events {
		if !Refuses(e.Reason) || e.Type == corev1.EventTypeNormal || passes(e) {
			continue
		}
		o := e.InvolvedObject
		ref, first, last := Ref{KindOf(o.GroupVersionKind().GroupKind()), o.Namespace, o.Name}, begun(e), Seen(e)
		if out[ref] == nil {
			out[ref] = map[string]told{}
		}
		t, again := out[ref][string(o.UID)]
		if !again || first.Before(t.first) {
			t.first = first
		}
		if !again || cmp.Or(last.Compare(t.last), cmp.Compare(e.Message, t.says)) > 0 {
			t.last, t.says, t.role = last, e.Message, setbacks[e.Reason]
		}
		out[ref][string(o.UID)] = t
	}
	return out
}

// setbacks are the reasons of events that tell of pods that could not be made, with the role of those,
// where the reason says it.
var setbacks = func() map[string]string {
	out := map[string]string{FailedCreate: "", kubeflowFailure: "", jobSetFailure: "", kserveFailure: ""}
	maps.Copy(out, rayFailures)
	return out
}()

// Refuses says whether events of that reason tell of pods that could not be made.
func Refuses(reason string) bool {
	_, is := setbacks[reason]
	return is
}

// Seen is when an Event was last observed. A new-style one keeps that in its series.
func Seen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return begun(e)
}

func begun(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// newestPods is, by controller, when its newest pod was made.
func newestPods(pods []*corev1.Pod) map[Ref]time.Time {
	out := map[Ref]time.Time{}
	for _, p := range pods {
		if o := metav1.GetControllerOf(p); o != nil {
			ref := ownerRef(o, p.Namespace)
			if p.CreationTimestamp.After(out[ref]) {
				out[ref] = p.CreationTimestamp.Time
			}
		}
	}
	return out
}
