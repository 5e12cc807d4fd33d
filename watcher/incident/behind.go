package incident

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workloads are Kueue's Workloads by what each stands for, without those that are over.
type workloads map[Ref]*Held

func (m Makers) kueue() workloads {
	out, kind := workloads{}, KindOf(KueueWorkload)
	for _, h := range m.Held {
		if h.kind == kind && h.owner != nil && !h.over && h.DeletionTimestamp == nil {
			out[ownerRef(h.owner, h.Namespace)] = h
		}
	}
	return out
}

// holds says whether Kueue holds a suspended Job that names no queue: one of its Workloads stands for
// it (manageJobsWithoutQueueName), or has let begin what owns it.
func (q workloads) holds(k maker, lookup Lookup) (held bool, behind *metav1.OwnerReference) {
	if len(q) == 0 {
		return false, nil
	}
	if behind = q.above(k.Child(), lookup); behind != nil {
		return true, behind
	}
	h := q[k.ref()]
	return h != nil && (h.owner.UID == "" || k.GetUID() == "" || h.owner.UID == k.GetUID()), nil
}

// named is who names a queue, where a Job that it makes is suspended and no Workload stands for either: Kueue has counted
// neither. It is suspended itself, or it would have the Job begin at once, which Kueue suspends all the same as one of its own
// (kueue issue 2612). nil for nobody.
func (m Makers) named(k maker, q workloads, lookup Lookup) *Held {
	chain := Owners(k.Child(), lookup)[1:]
	if slices.ContainsFunc(chain, func(r Ref) bool { return q[r] != nil }) {
		return nil
	}
	for _, h := range m.Held {
		if h.frees && h.Labels[QueueLabel] != "" && h.DeletionTimestamp == nil && slices.Contains(chain[1:], h.ref()) {
			return h
		}
	}
	return nil
}

// inTurn is what lets its Jobs begin one after the other (jobset, startupPolicy): one that is suspended
// while others run waits for them.
const inTurn = "JobSet."

// above is what owns the maker of a pod and was let begin by Kueue, which so is to let the maker alone;
// nil for nothing.
func (q workloads) above(child *corev1.Pod, lookup Lookup) *metav1.OwnerReference {
	for _, ref := range Owners(child, lookup)[2:] {
		if h := q[ref]; h != nil && h.let && !strings.HasPrefix(ref.Kind, inTurn) {
			return h.owner
		}
	}
	return nil
}

// behind lists who makes pods of several templates and is suspended though what owns it was let begin.
func (m Makers) behind(pods []*corev1.Pod, kueue func() workloads, lookup Lookup) []Refusal {
	if !m.AllPods {
		return nil
	}
	var out []Refusal
	for _, h := range m.Held {
		if !h.makes || !h.aside || h.DeletionTimestamp != nil {
			continue
		}
		above := kueue().above(h.Child(), lookup)
		if above == nil {
			continue
		}
		for _, set := range h.sets {
			if n := set.Count - set.made(pods, h.Namespace); n > 0 {
				out = append(out, Refusal{Owner: h.ref(), Pod: h.next(set, m), Wants: set.Count, Missing: n, Set: set.set(h.ref()), Since: h.CreationTimestamp.Time, Version: h.ResourceVersion, Held: true, Behind: above})
			}
		}
	}
	return out
}
