package live

import (
	"context"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/owners"
)

// findOwners has the named kinds followed that the API server serves. That it serves one not is
// an answer; that it would not say so leaves it unread.
func (f *Follower) findOwners(ctx context.Context, client kubernetes.Interface, reader owners.Reader) {
	f.reader, f.owners = reader, reader.Served(ctx, client.Discovery())
	for _, k := range f.owners.Kinds {
		if !slices.ContainsFunc(f.kinds, func(read *cluster.Kind) bool { return read.Resource == k.Resource }) { // else the whole of it is read
			f.kinds = append(f.kinds, cluster.OfOwners(k))
		}
	}
	for name, why := range f.owners.Untold {
		f.unread[name.String()] = why.Error()
	}
}

// tellOwners says which kinds of owners were looked at.
func (f *Follower) tellOwners(s *cluster.State) {
	s.OwnerKinds, s.OwnersAbsent = f.owners.Kinds, f.owners.Absent
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.owners.Untold {
		s.Unread[name.String()] = f.unread[name.String()]
	}
}

// kindNamed finds one of the kinds that are followed.
func (f *Follower) kindNamed(name string) *cluster.Kind {
	i := slices.IndexFunc(f.kinds, func(k *cluster.Kind) bool { return k.Name == name })
	return f.kinds[i]
}
