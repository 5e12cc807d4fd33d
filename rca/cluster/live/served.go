package live

import (
	"context"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/unpend/unpend/rca/cluster"
)

// served lists the kinds to follow, each in the version to ask for: all, but for those
// that are to be discovered and are not, and those that unread says, by name, why they
// cannot be read; devices is the version of resource.k8s.io. What is installed later is
// not seen before the next start.
func served(ctx context.Context, client discovery.DiscoveryInterface) (follow []*cluster.Kind, devices string, unread map[string]string) {
	with := discovery.ToDiscoveryInterfaceWithContext(client)
	groups, err := with.ServerGroupsWithContext(ctx)
	if err != nil {
		groups = nil // who may not discover tries
	}
	devices, why := deviceVersion(groups)
	unread = map[string]string{}
	for _, k := range cluster.Kinds() {
		version := k.Resource.Version
		switch {
		case k.OfDevices() && why != "":
			unread[k.Name] = why
			continue
		case k.OfDevices():
			version = devices
		case k.Discovered && groups != nil:
			if version = servedIn(ctx, k, with, groups); version == "" {
				continue
			}
		}
		found := *k
		found.Resource.Version = version
		follow = append(follow, &found)
	}
	return follow, devices, unread
}

// servedIn is the version of the kind that is served, the server's preferred one
// first; empty when none is.
func servedIn(ctx context.Context, k *cluster.Kind, client discovery.DiscoveryInterfaceWithContext, groups *metav1.APIGroupList) string {
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Resource.Group })
	if i < 0 {
		return ""
	}
	g := groups.Groups[i]
	for _, v := range append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...) {
		resources, err := client.ServerResourcesForGroupVersionWithContext(ctx, v.GroupVersion)
		if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == k.Resource.Resource && r.Kind == k.API() }) {
			return v.Version
		}
	}
	return ""
}

// deviceVersion chooses the version of resource.k8s.io that an API server is asked
// for: v1 is served from 1.34 on, v1beta2 from 1.33, v1beta1 from 1.32, each only
// where the server has it switched on. unread says that all it serves are
// versions that cannot be read. A server that serves none, or does not tell (nil), is
// asked for v1.
func deviceVersion(groups *metav1.APIGroupList) (version, unread string) {
	if groups == nil {
		return "v1", ""
	}
	var served []string
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if g.Name == resourcev1.GroupName {
				served = append(served, v.Version)
			}
		}
	}
	for _, v := range cluster.DeviceVersions {
		if slices.Contains(served, v) {
			return v, ""
		}
	}
	if len(served) > 0 {
		return "v1", "the API server serves " + resourcev1.GroupName + " as " + strings.Join(served, ", ") + " alone, which cannot be read"
	}
	return "v1", ""
}
