package whatif

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulerplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// plugins are the filters of the default scheduler profile, in its order.
type plugins struct {
	preFilters map[string]fwk.PreFilterPlugin
	filters    []fwk.FilterPlugin
	// preOnly are plugins that judge in PreFilter and have no Filter.
	preOnly []fwk.PreFilterPlugin
	// dra sets devices aside, claims knows who has them.
	dra    fwk.ReservePlugin
	claims *claimTracker
	// framework and preemption judge which pods the scheduler would take for another.
	framework  framework.Framework
	preemption *defaultpreemption.DefaultPreemption
	synced     []cache.DoneChecker
	stop       context.CancelFunc
	factory    informers.SharedInformerFactory
}

// registerMetrics does once what the scheduler's main does: the plugins count.
var registerMetrics = sync.OnceFunc(func() { metrics.Register() })

// startPlugins makes the plugins as the scheduler does. Their listers read
// others through an in-memory clientset, so that the plugins' own caches are
// filled the way they expect.
func startPlugins(ctx context.Context, shared fwk.SharedLister, others []runtime.Object) (*plugins, error) {
	registerMetrics()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ctx = klog.NewContext(ctx, klog.Background())
	client := fake.NewSimpleClientset(others...) //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	p := &plugins{stop: stop, factory: informers.NewSharedInformerFactory(client, 0), preFilters: map[string]fwk.PreFilterPlugin{}}
	made, order, err := p.make(ctx, shared, client)
	if err != nil {
		p.close()
		return nil, err
	}
	p.factory.Start(ctx.Done())
	p.factory.WaitForCacheSync(ctx.Done())
	// The informers have everything; the scheduler's own caches follow them, within a millisecond:
	// to look every so often, as WaitForCacheSync does, would be most of what a copy takes.
	cache.WaitFor(ctx, "", p.synced...)
	p.sort(made, order)
	return p, nil
}

func (p *plugins) close() {
	p.stop()
	p.factory.Shutdown()
}

// make builds the default profile and keeps hold of each plugin on the way.
func (p *plugins) make(ctx context.Context, shared fwk.SharedLister, client *fake.Clientset) (map[string]fwk.Plugin, *config.Plugins, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, nil, fmt.Errorf("read the default profile: %w", err)
	}
	made := map[string]fwk.Plugin{}
	registry := frameworkruntime.Registry{}
	known := schedulerplugins.NewInTreeRegistry()
	comparing(known)
	for name, factory := range known {
		registry[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, h)
			made[name] = plugin
			return plugin, err
		}
	}
	dra, err := p.resources(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, err := frameworkruntime.NewFramework(ctx, registry, &defaults.Profiles[0],
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(p.factory),
		frameworkruntime.WithSnapshotSharedLister(shared),
		frameworkruntime.WithMutableSnapshotLister(still{shared}),
		frameworkruntime.WithPodNominator(unnominated{}),
		frameworkruntime.WithSharedDRAManager(dra),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(p.factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		return nil, nil, err
	}
	p.framework = f
	if p.preemption, err = preemptionOf(made); err != nil {
		return nil, nil, err
	}
	return made, f.ListPlugins(), nil
}

// comparing has tolerations with the operators Gt and Lt judged as the cluster does that
// took them: its gate is on, or they could not have been written. Others are not concerned.
func comparing(known frameworkruntime.Registry) {
	known[tainttoleration.Name] = frameworkruntime.FactoryAdapter(feature.Features{EnableTaintTolerationComparisonOperators: true}, tainttoleration.New)
}

func (p *plugins) resources(ctx context.Context) (fwk.SharedDRAManager, error) {
	dra := p.factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), dra.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	p.synced = append(p.synced, claims.AddEventHandler(cache.ResourceEventHandlerFuncs{}).HasSyncedChecker())
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: dra.ResourceSlices()})
	if err != nil {
		return nil, fmt.Errorf("track resource slices: %w", err)
	}
	p.synced = append(p.synced, slices.HasSyncedChecker())
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, p.factory)
	// Which class stands behind an extended resource is told by events, as in
	// the scheduler (eventhandlers.go, addAllEventHandlers).
	if extended, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && extended != nil {
		registration, err := dra.DeviceClasses().Informer().AddEventHandler(extended)
		if err != nil {
			return nil, fmt.Errorf("follow device classes: %w", err)
		}
		p.synced = append(p.synced, registration.HasSyncedChecker())
	}
	p.claims = &claimTracker{ResourceClaimTracker: manager.ResourceClaims()}
	return &draManager{manager, p.claims}, nil
}

// sort lists the plugins in the order the scheduler runs them.
func (p *plugins) sort(made map[string]fwk.Plugin, order *config.Plugins) {
	p.dra, _ = made[dynamicresources.Name].(fwk.ReservePlugin)
	hasFilter := map[string]bool{}
	for _, pl := range order.Filter.Enabled {
		if f, ok := made[pl.Name].(fwk.FilterPlugin); ok {
			p.filters = append(p.filters, f)
			hasFilter[pl.Name] = true
		}
	}
	for _, pl := range order.PreFilter.Enabled {
		f, ok := made[pl.Name].(fwk.PreFilterPlugin)
		switch {
		case !ok:
		case hasFilter[pl.Name]:
			p.preFilters[pl.Name] = f
		default:
			p.preOnly = append(p.preOnly, f)
		}
	}
}
