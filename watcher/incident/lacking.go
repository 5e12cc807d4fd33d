package incident

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setback is what is told of a pod that what makes pods of several templates could not make.
type setback struct {
	since time.Time
	says  string
	role  string // of the sets that it is about: what makes them says that, and not which set; empty: any
}

// setMarks are the labels that a pod is told by, among others of the same owner.
var setMarks = []string{rayCluster, rayNodeType, rayGroup, kubeflowJob, kubeflowRole, kserveService, kserveComponent, sparkApp, sparkRole}

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
// status says that, or an event does, unless one was made after it. Where the sets are made one after
// the other, what is told is told of the first that lacks pods, and those behind it are not tried.
func (m Makers) lacking(pods []*corev1.Pod, events func() map[Ref]map[string]told) []Refusal {
	if !m.AllPods {
		return nil
	}
	var out []Refusal
	for _, h := range m.Held {
		if !h.makes || h.aside || h.over || h.DeletionTimestamp != nil {
			continue
		}
		back, unheard := m.setback(h, pods, events), false
		if back == nil {
			if unheard = m.unheard(h); !unheard {
				continue
			}
			back = &setback{since: h.CreationTimestamp.Time}
		}
		for i, set := range h.sets {
			n := m.without(h, set, pods)
			if n < 1 || back.says == "" && h.begun(pods) || back.role != "" && set.Role != back.role {
				continue
			}
			r := Refusal{Owner: h.ref(), Pod: m.member(h, set), Wants: set.Count, Missing: n, Set: set.set(h.ref()), Since: back.since, Version: h.ResourceVersion, Says: back.says, Unheard: unheard}
			if h.unordered {
				out = append(out, r)
				continue
			}
			r.Later = m.later(h, h.sets[i+1:], pods)
			out = append(out, r)
			break
		}
	}
	return out
}

// silence is after how long without a word nobody is taken to have heard of an object: operators write a status in seconds.
const silence = 5 * time.Minute

// unheard says whether nobody has acted on an object since it was made, long ago.
func (m Makers) unheard(h *Held) bool {
	return h.answers && h.untouched && !m.Now.IsZero() && !h.CreationTimestamp.IsZero() && m.Now.Sub(h.CreationTimestamp.Time) > silence
}

// begun says whether it has made any pod: where it does not say what it could not make, what lacks others is not that.
func (h *Held) begun(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(h.sets, func(s podSet) bool { return s.made(pods, h.Namespace) > 0 })
}

// later are those of some sets that lack pods.
func (m Makers) later(h *Held, sets []podSet, pods []*corev1.Pod) []Later {
	var out []Later
	for _, set := range sets {
		if n := m.without(h, set, pods); n > 0 {
			out = append(out, Later{set.set(h.ref()), set.Name, set.Count, n})
		}
	}
	return out
}

// setback is what is told of a pod that it could not make; nil where nothing is.
func (m Makers) setback(h *Held, pods []*corev1.Pod, events func() map[Ref]map[string]told) *setback {
	if h.lacks != nil {
		return h.lacks
	}
	e, ok := eventOf(h, events()[h.ref()])
	if !ok || e.last.Before(newestPods(pods)[h.ref()]) || slices.ContainsFunc(m.Jobs, func(j *batchv1.Job) bool { return h.controls(j) && j.CreationTimestamp.After(e.last) }) {
		return nil
	}
	return &setback{e.first, e.says, e.role}
}

// without is how many pods of a set do not exist: of Jobs that are made, those of the Jobs that do not.
func (m Makers) without(h *Held, s podSet, pods []*corev1.Pod) int {
	if s.Each == 0 {
		return s.Count - s.made(pods, h.Namespace)
	}
	if !m.AllJobs {
		return 0
	}
	n := s.Count
	for _, j := range m.Jobs {
		if h.controls(j) && numbered(j.Name, h.Name+"-"+s.Name+"-") {
			n -= s.Each
		}
	}
	return n
}

func (h *Held) controls(o metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && h.Namespace == o.GetNamespace() && ownerRef(owner, h.Namespace) == h.ref()
}

// numbered says whether a name is the prefix and a number.
func numbered(name, prefix string) bool {
	number, is := strings.CutPrefix(name, prefix)
	_, err := strconv.ParseUint(number, 10, 32)
	return is && err == nil
}

// member is the pod of a set that would be made now: of the group that the object has, where its template
// leaves that to who makes them.
func (m Makers) member(h *Held, set podSet) *corev1.Pod {
	p := h.next(set, m)
	if p.Spec.SchedulerName != "" {
		return p
	}
	for _, g := range m.Held {
		if g.group != "" && g.owner != nil && ownerRef(g.owner, g.Namespace) == h.ref() {
			g.asMember(p)
			break
		}
	}
	return p
}

// made counts the pods of a set: those that have not ended, where others are made in their place.
func (s podSet) made(pods []*corev1.Pod, namespace string) int {
	n := 0
	for _, p := range pods {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.Namespace == namespace && (s.Kept || !ended) && s.marked(p) {
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
