package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// served lists the kinds to follow: all, but for those that are to be discovered and
// are not. What is installed later is not seen before the next start.
func served(ctx context.Context, client discovery.DiscoveryInterface) []*kind {
	with := discovery.ToDiscoveryInterfaceWithContext(client)
	groups, err := with.ServerGroupsWithContext(ctx)
	out := make([]*kind, 0, len(kinds))
	for i := range kinds {
		k := &kinds[i]
		if k.discovered && err == nil { // whoever may not discover tries
			version := k.servedIn(ctx, with, groups)
			if version == "" {
				continue
			}
			found := *k
			found.resource.Version = version
			k = &found
		}
		out = append(out, k)
	}
	return out
}

// servedIn is the version of the kind that is served, the server's preferred one
// first; empty when none is.
func (k *kind) servedIn(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups *metav1.APIGroupList) string {
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == k.resource.Group })
	if i < 0 {
		return ""
	}
	g := groups.Groups[i]
	for _, v := range append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...) {
		resources, err := client.ServerResourcesForGroupVersionWithContext(ctx, v.GroupVersion)
		if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == k.resource.Resource && r.Kind == k.api() }) {
			return v.Version
		}
	}
	return ""
}
