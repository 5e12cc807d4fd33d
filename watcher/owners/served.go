package owners

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/unpend/unpend/watcher/incident"
)

// Kind is one that the API server serves, in the version that it prefers.
type Kind struct {
	Resource   schema.GroupVersionResource
	API        schema.GroupVersionKind
	Namespaced bool
}

// Name is the kind as an incident.Ref has it.
func (k Kind) Name() string { return incident.KindOf(k.API.GroupKind()) }

// Found is what came of asking for the named kinds.
type Found struct {
	Kinds []Kind
	// Absent are those that the API server does not serve: nothing can be of such a kind.
	Absent []schema.GroupResource
	// Untold are those of which it would not say so, and why.
	Untold map[schema.GroupResource]error
}

// Served asks which of the named kinds the API server serves. What is installed later is not
// seen before the next time.
func (r Reader) Served(ctx context.Context, client discovery.DiscoveryInterface) Found {
	out := Found{Untold: map[schema.GroupResource]error{}}
	if len(r.Names) == 0 {
		return out
	}
	with := discovery.ToDiscoveryInterfaceWithContext(client)
	groups, err := with.ServerGroupsWithContext(ctx)
	for _, name := range r.Names {
		if err != nil {
			out.Untold[name] = fmt.Errorf("ask which API groups are served: %w", err)
			continue
		}
		k, err := served(ctx, with, groups, name)
		switch {
		case err != nil:
			out.Untold[name] = err
		case k == nil:
			out.Absent = append(out.Absent, name)
		default:
			out.Kinds = append(out.Kinds, *k)
		}
	}
	return out
}

// served looks through the versions of a group, the preferred one first; nil: none has the kind.
func served(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups *metav1.APIGroupList, name schema.GroupResource) (*Kind, error) {
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == name.Group })
	if i < 0 {
		return nil, nil
	}
	g := groups.Groups[i]
	for _, v := range append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...) {
		resources, err := client.ServerResourcesForGroupVersionWithContext(ctx, v.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("ask what %s serves: %w", v.GroupVersion, err)
		}
		for _, r := range resources.APIResources {
			if r.Name == name.Resource {
				return &Kind{Resource: name.WithVersion(v.Version), API: schema.GroupVersionKind{Group: name.Group, Version: v.Version, Kind: r.Kind}, Namespaced: r.Namespaced}, nil
			}
		}
	}
	return nil, nil
}
