package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// served lists the kinds to follow, each in the version to ask for: all, but for those
// that are to be discovered and are not, and those that unread says, by name, why they
// cannot be read; devices is the version of resource.k8s.io. What is installed later is
// not seen before the next start.
func served(ctx context.Context, client discovery.DiscoveryInterface) (follow []*kind, devices string, unread map[string]string) {
	with := discovery.ToDiscoveryInterfaceWithContext(client)
	groups, err := with.ServerGroupsWithContext(ctx)
	if err != nil {
		groups = nil // who may not discover tries
	}
	devices, why := deviceVersion(groups)
	unread = map[string]string{}
	for i := range kinds {
		k, version := &kinds[i], kinds[i].resource.Version
		switch {
		case k.ofDevices() && why != "":
			unread[k.name] = why
			continue
		case k.ofDevices():
			version = devices
		case k.discovered && groups != nil:
			if version = k.servedIn(ctx, with, groups); version == "" {
				continue
			}
		}
		found := *k
		found.resource.Version = version
		follow = append(follow, &found)
	}
	return follow, devices, unread
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
