package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MakesAll says whether the layouts have as many as are asked of each profile.
func (r Remake) MakesAll(asks []Ask) bool {
	return !slices.ContainsFunc(asks, func(a Ask) bool { return a.Profile != "" && r.Made[a.Profile] < a.Count })
}

// Tenancy is who has to leave a GPU for it to be re-made, gangs as a whole; unknown:
// nobody can tell.
type Tenancy struct {
	Pods    []*corev1.Pod
	Traits  []Traits // of each of them
	Unknown bool
}

// HeldOf is how many of a resource the node's pods hold.
func (n *Node) HeldOf(name corev1.ResourceName) int64 {
	if q := n.Requested[name]; q.IsZero() {
		return 0
	}
	held := int64(0)
	for _, p := range n.Pods {
		q := n.Requests[p][name]
		held += q.Value()
	}
	return held
}

// Tenancies are those of the node's GPUs.
func (w *Cluster) Tenancies(n *Node) []Tenancy {
	if n.tenants != nil {
		return n.tenants
	}
	n.tenants = make([]Tenancy, len(n.GPUs))
	for i, g := range n.GPUs {
		t := &n.tenants[i]
		for _, s := range g.Slots {
			if !s.Held {
				continue
			}
			p := w.State.Pod(s.Holder.Namespace, s.Holder.Pod)
			if t.Unknown = t.Unknown || s.Unknown || p == nil; t.Unknown {
				break
			}
			if own := w.TraitsOf(p); own.Gang == "" {
				t.Pods, t.Traits = append(t.Pods, p), append(t.Traits, own)
				continue
			}
			for _, p := range w.Together(p) {
				t.Pods, t.Traits = append(t.Pods, p), append(t.Traits, w.TraitsOf(p))
			}
		}
	}
	return n.tenants
}
