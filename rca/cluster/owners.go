package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// ofOwners is a kind of owners that a configuration names. By its name there it is told apart
// from all that a diagnosis reads the whole of.
func ofOwners(k owners.Kind) *kind {
	return &kind{name: k.Resource.GroupResource().String(), wire: k.API.Kind, resource: k.Resource, namespaced: k.Namespaced,
		optional: true, owners: true, list: func(s *State) any { return &s.Owners }}
}

// findOwners has the named kinds followed that the API server serves. That it serves one not is
// an answer; that it would not say so leaves it unread.
func (f *Follower) findOwners(ctx context.Context, client kubernetes.Interface, reader owners.Reader) {
	f.reader, f.owners = reader, reader.Served(ctx, client.Discovery())
	for _, k := range f.owners.Kinds {
		if !slices.ContainsFunc(f.kinds, func(read *kind) bool { return read.resource == k.Resource }) { // else the whole of it is read
			f.kinds = append(f.kinds, ofOwners(k))
		}
	}
	for name, why := range f.owners.Untold {
		f.unread[name.String()] = why.Error()
	}
}

// tellOwners says which kinds of owners were looked at.
func (f *Follower) tellOwners(s *State) {
	s.OwnerKinds, s.OwnersAbsent = f.owners.Kinds, f.owners.Absent
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.owners.Untold {
		s.Unread[name.String()] = f.unread[name.String()]
	}
}

// kindNamed finds one of the kinds that are followed.
func (f *Follower) kindNamed(name string) *kind {
	i := slices.IndexFunc(f.kinds, func(k *kind) bool { return k.name == name })
	return f.kinds[i]
}

// OwnerUnread says why the walk from a pod to its topmost owner could not go on behind an owner
// that was not found: its kind is not read. Empty where it is, and the owner is gone.
func (s *State) OwnerUnread(o *metav1.OwnerReference) string {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	name := incident.KindOf(gvk.GroupKind())
	if incident.OwnKind(name) {
		return ""
	}
	if slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
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

// otherKind notes that a dump holds a kind that no diagnosis reads the whole of: what of such a
// kind it does not hold was not there.
func (r *fileReader) otherKind(apiVersion, name string) {
	k := owners.Kind{API: schema.FromAPIVersionAndKind(apiVersion, name)}
	k.Resource, _ = meta.UnsafeGuessKindToResource(k.API)
	if !slices.ContainsFunc(r.state.OwnerKinds, func(o owners.Kind) bool { return o.Name() == k.Name() }) {
		r.state.OwnerKinds = append(r.state.OwnerKinds, k)
	}
}

// other takes in an object that may own what makes pods.
func (r *fileReader) other(o Object) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		r.otherKind(m.APIVersion, m.Kind)
		r.state.Owners = append(r.state.Owners, m)
	}
}

// readOther reads who an object of a kind is that nobody reads the whole of, and what owns it;
// nil for what is no object of an API.
func readOther(apiVersion, name string, data []byte) Object {
	var o struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if isRemediation(apiVersion, name) || json.Unmarshal(data, &o) != nil || o.Name == "" {
		return nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: name}, ObjectMeta: owners.Trim(&o.ObjectMeta)}
}
