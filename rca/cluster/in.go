package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// In is the state without the waiting pods of other namespaces: what a dump of
// one namespace has to hold. Everything else stays, or the diagnosis would differ.
func (s *State) In(namespace string) *State {
	if namespace == "" {
		return s
	}
	out := &State{Now: s.Now, Live: s.Live, Taken: s.Taken, Unread: s.Unread, Owners: slices.Clone(s.Owners), OwnerKinds: s.OwnerKinds, OwnersAbsent: s.OwnersAbsent}
	for i := range kinds {
		k := &kinds[i]
		for _, o := range k.Objects(s) {
			p, isPod := any(o).(*corev1.Pod)
			if isPod && p.Namespace != namespace && p.Spec.NodeName == "" {
				continue
			}
			k.Add(out, o)
		}
	}
	out.Finish()
	return out
}
