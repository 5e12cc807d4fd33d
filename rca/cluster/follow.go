package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
)

// Follower keeps a State up to date from the API server.
type Follower struct {
	client    kubernetes.Interface
	now       func() time.Time
	typed     informers.SharedInformerFactory
	custom    dynamicinformer.DynamicSharedInformerFactory
	informers map[string]cache.SharedIndexInformer // by kind
	stop      context.CancelFunc

	mu     sync.Mutex
	unread map[string]string
}

// syncPatience is how long one kind may take to be listed: 100,000 pods take
// some 20 s on a slow link.
const syncPatience = 60 * time.Second

// Follow starts informers for every kind and waits until each is filled or has
// been refused: a missing right or a kind that is not installed ends up in
// State.Unread. Only an API server that cannot be asked at all is an error.
func Follow(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time) (*Follower, error) {
	if _, err := client.Discovery().ServerVersion(); err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	f := &Follower{client: client, now: now, stop: stop, unread: map[string]string{},
		typed:     informers.NewSharedInformerFactory(client, 0),
		custom:    dynamicinformer.NewDynamicSharedInformerFactory(custom, 0),
		informers: map[string]cache.SharedIndexInformer{}}
	for i := range kinds {
		if err := f.informer(&kinds[i]); err != nil {
			stop()
			return nil, err
		}
	}
	f.typed.Start(ctx.Done())
	f.custom.Start(ctx.Done())
	if err := f.wait(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close stops the informers and waits for them.
func (f *Follower) Close() {
	f.stop()
	f.typed.Shutdown()
	f.custom.Shutdown()
}

func (f *Follower) informer(k *kind) error {
	if k.byName {
		return nil
	}
	var in cache.SharedIndexInformer
	if k.custom {
		in = f.custom.ForResource(k.resource).Informer()
	} else {
		generic, err := f.typed.ForResource(k.resource)
		if err != nil {
			return fmt.Errorf("watch %s: %w", k, err)
		}
		in = generic.Informer()
	}
	if err := in.SetTransform(func(o any) (any, error) {
		if t, ok := o.(Object); ok {
			trim(t)
		}
		return o, nil
	}); err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	if err := in.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { f.refused(k, err) }); err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	f.informers[k.name] = in
	return nil
}

// refused notes why a kind is not read.
func (f *Follower) refused(k *kind, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		f.unread[k.name] = fmt.Sprintf("the right to list %s is missing", k.resource.GroupResource())
	case apierrors.IsNotFound(err) && k.optional:
		f.unread[k.name] = fmt.Sprintf("%s is not installed", k.resource.GroupResource())
	case !f.informers[k.name].HasSynced():
		f.unread[k.name] = err.Error()
	}
}

// wait returns when every kind is filled or refused.
func (f *Follower) wait(ctx context.Context) error {
	deadline := time.NewTimer(syncPatience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for f.pending() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("read the cluster: %w", ctx.Err())
		case <-deadline.C:
			return nil // what is not there yet is unread, with the error met last
		case <-tick.C:
		}
	}
	return nil
}

func (f *Follower) pending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, in := range f.informers {
		if !in.HasSynced() && f.unread[name] == "" {
			return true
		}
	}
	return false
}

// State is the cluster as it is known now.
func (f *Follower) State(ctx context.Context) *State {
	s := &State{Now: f.now(), Live: true, Unread: map[string]string{}}
	for i := range kinds {
		k := &kinds[i]
		in := f.informers[k.name]
		if in == nil {
			continue
		}
		for _, o := range in.GetStore().List() {
			if obj, ok := k.typed(o); ok {
				k.add(s, obj)
			}
		}
		if !in.HasSynced() {
			f.mu.Lock()
			s.Unread[k.name] = f.unread[k.name]
			f.mu.Unlock()
		}
	}
	s.finish()
	f.configMaps(ctx, s)
	return s
}

// typed turns what an informer holds into the kind's type.
func (k *kind) typed(o any) (Object, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || k.name != nodeprobe.Kind.Kind {
		obj, ok := o.(Object)
		return obj, ok
	}
	var geo nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &geo); err != nil {
		return nil, false
	}
	return &geo, true
}

// Read takes the cluster in once.
func Read(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time) (*State, error) {
	f, err := Follow(ctx, client, custom, now)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.State(ctx), nil
}
