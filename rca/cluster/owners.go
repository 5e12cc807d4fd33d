package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// OfOwners is a kind of owners that a configuration names. By its name there it is told apart
// from all that a diagnosis reads the whole of.
func OfOwners(k owners.Kind) *Kind {
	return &Kind{Name: k.Resource.GroupResource().String(), wire: k.API.Kind, Resource: k.Resource, Namespaced: k.Namespaced,
		Optional: true, Owners: true, list: func(s *State) any { return &s.Owners }}
}

// OwnerUnread says why the walk from a pod to its topmost owner could not go on behind an owner
// that was not found: its kind is not read. Empty where it is, and the owner is gone.
func (s *State) OwnerUnread(o *metav1.OwnerReference) string {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	name := incident.KindOf(gvk.GroupKind())
	if incident.OwnKind(name) {
		return ""
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name }) {
		return s.Unread[name]
	}
	for _, k := range s.OwnerKinds {
		if k.Name() == name {
			return s.Unread[k.Resource.GroupResource().String()]
		}
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk) // as nearly every API names it; who differs is told less
	if guess := resource.GroupResource(); slices.Contains(s.OwnersAbsent, guess) {
		return fmt.Sprintf("the API server does not serve %s", guess)
	} else if why := s.Unread[guess.String()]; why != "" {
		return why
	}
	return owners.ErrUnread.Error()
}

// ownerKind is the kind of an owner of which the metadata was read.
func ownerKind(o *metav1.PartialObjectMetadata) string {
	return incident.KindOf(o.GroupVersionKind().GroupKind())
}

// finishOwners sorts the owners, and keeps the newest of those met twice.
func (s *State) finishOwners() {
	order := func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(strings.Compare(ownerKind(a), ownerKind(b)), compareNames(a, b))
	}
	slices.SortStableFunc(s.Owners, order)
	out := s.Owners[:0]
	for _, o := range s.Owners {
		switch last := len(out) - 1; {
		case last < 0 || order(out[last], o) != 0:
			out = append(out, o)
		case supersedes(o, out[last]):
			out[last] = o
		}
	}
	s.Owners = out
}
