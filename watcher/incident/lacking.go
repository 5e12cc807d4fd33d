package incident

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setback is what is told of a pod that what makes pods of several templates could not make.
type setback struct {
	since time.Time
	says  string
	role  string // of the sets that it is about, by the value of roleMark; empty: any
}

// roleMark is the label by which sets of different roles are told apart: what makes them says of
// which role the pod was that it could not make, and not of which set.
const roleMark = rayNodeType

// setMarks are the labels that a pod is told by, among others of the same owner.
var setMarks = []string{rayCluster, rayNodeType, rayGroup}

// Marks are the labels of a pod that tell whose it is: its group, where nobody owns it, and its set,
// where its owner makes several.
func Marks(p *corev1.Pod) map[string]string {
	owner := metav1.GetControllerOfNoCopy(p)
	keys := setMarks
	switch {
	case owner == nil:
		keys = []string{GroupLabel}
	case OwnKind(owner.Kind):
		return nil
	}
	var out map[string]string
	for _, key := range keys {
		if value := p.Labels[key]; value != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// lacking lists who makes pods of several templates itself and could not make the next one: its own
// status says that, or an event does, unless a pod was made after it. The sets are made one after
// the other, so what is told is told of the first that lacks pods, and those behind it are not tried.
func (m Makers) lacking(pods []*corev1.Pod, events func() map[Ref]map[string]told) []Refusal {
	if !m.AllPods {
		return nil
	}
	var out []Refusal
	for _, h := range m.Held {
		if !h.makes || h.aside || h.DeletionTimestamp != nil {
			continue
		}
		back := h.setback(pods, events)
		if back == nil {
			continue
		}
		for i, set := range h.sets {
			if role := set.Marks[roleMark]; back.role != "" && role != back.role {
				continue
			}
			if n := set.Count - set.made(pods, h.Namespace); n > 0 {
				out = append(out, Refusal{Owner: h.ref(), Pod: h.next(set, m), Wants: set.Count, Missing: n, Set: set.set(h.ref()), Later: h.later(h.sets[i+1:], pods), Since: back.since, Version: h.ResourceVersion, Says: back.says})
				break
			}
		}
	}
	return out
}

// later are those of some sets that lack pods.
func (h *Held) later(sets []podSet, pods []*corev1.Pod) []Later {
	var out []Later
	for _, set := range sets {
		if n := set.Count - set.made(pods, h.Namespace); n > 0 {
			out = append(out, Later{set.set(h.ref()), set.Name, set.Count, n})
		}
	}
	return out
}

// setback is what is told of a pod that it could not make; nil where nothing is.
func (h *Held) setback(pods []*corev1.Pod, events func() map[Ref]map[string]told) *setback {
	if h.lacks != nil {
		return h.lacks
	}
	e, ok := eventOf(h, events()[h.ref()])
	if !ok || e.last.Before(newestPods(pods)[h.ref()]) {
		return nil
	}
	return &setback{e.first, e.says, e.role}
}

// made counts the pods of a set that have not ended.
func (s podSet) made(pods []*corev1.Pod, namespace string) int {
	n := 0
	for _, p := range pods {
		if p.Namespace == namespace && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && s.marked(p) {
			n++
		}
	}
	return n
}

func (s podSet) marked(p *corev1.Pod) bool {
	for key, value := range s.Marks {
		if p.Labels[key] != value {
			return false
		}
	}
	return true
}
