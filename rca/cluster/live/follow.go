package live

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/shelf"
	"github.com/unpend/unpend/watcher/events"
	"github.com/unpend/unpend/watcher/owners"
)

// Follower keeps a State up to date from the API server.
type Follower struct {
	now     func() time.Time
	stop    context.CancelFunc
	layouts *layouts
	// factories own the goroutines of the informers.
	factories []runner
	informers map[string]cache.SharedIndexInformer // by kind
	kinds     []*cluster.Kind                      // that are served
	shelf     *shelf.Shelf                         // of what pods have alike
	reader    owners.Reader
	owners    owners.Found

	mu sync.Mutex
	// unread says, by kind, why it is not read; partial, why only in part.
	unread, partial map[string]string
	// failing kinds are tried again for a while.
	failing map[string]failure
	// devices is the version of resource.k8s.io that is read.
	devices string
	// failed is told of watches that fail; nil: nobody is.
	failed func(kind, reason string)
	// lost is when following pods failed last.
	lost time.Time
	// newest is the highest resourceVersion of a pod that has come.
	newest string
}

// runner starts informers, and waits for their end.
type runner interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// failure is an error that may pass.
type failure struct {
	since time.Time
	says  string
}

const (
	// syncPatience is how long one kind may take to be listed: 100,000 pods take
	// some 20 s on a slow link.
	syncPatience = 60 * time.Second
	// failPatience is how long errors other than a refusal are tried again: client-go
	// starts at 0.8 s and doubles, so three times.
	failPatience = 5 * time.Second
)

// Follow starts informers for every kind and waits until each is filled or has
// been refused: a missing right or a kind that is not installed ends up in
// State.Unread. Only an API server that cannot be asked at all is an error. Which kinds of
// owners are read beside Kubernetes' own the reader says; without one, none.
func Follow(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time, reader ...owners.Reader) (*Follower, error) {
	return follow(ctx, client, custom, now, "", reader)
}

// follow reads kinds that may not be listed everywhere in one namespace, if one
// is given.
func follow(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time, namespace string, reader []owners.Reader) (*Follower, error) {
	// Who may not even ask for the version may still be allowed to list.
	if _, err := client.Discovery().ServerVersionWithContext(ctx); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	f := &Follower{now: now, stop: stop, layouts: newLayouts(client, now), shelf: shelf.New(), informers: map[string]cache.SharedIndexInformer{}, partial: map[string]string{}, failing: map[string]failure{}}
	f.layouts.failed = func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.fails("ConfigMap", err)
	}
	f.kinds, f.devices, f.unread = served(ctx, client.Discovery())
	if len(reader) > 0 {
		f.findOwners(ctx, client, reader[0])
	}
	if err := f.start(ctx, client, custom, f.kinds, ""); err != nil {
		f.Close()
		return nil, err
	}
	if refused := f.refusedIn(namespace); len(refused) > 0 {
		if err := f.start(ctx, client, custom, refused, namespace); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// start runs informers for some kinds, in one namespace or (empty) everywhere,
// and waits for them.
func (f *Follower) start(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, some []*cluster.Kind, namespace string) error {
	typed := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	dyn := dynamicinformer.NewFilteredDynamicSharedInformerFactory(custom, 0, namespace, nil)
	factories := []runner{typed, dyn}
	var named metadatainformer.SharedInformerFactory // made where one is followed
	for _, k := range some {
		if k.ByName {
			continue
		}
		var in cache.SharedIndexInformer
		switch {
		case k.Name == "Event":
			told := events.NewInformer(client, namespace)
			in, factories = told, append(factories, told)
		case k.Name == nodeprobe.Kind.Kind && client.Discovery().RESTClient() != nil: // one in memory has none
			probed := newReports(client.Discovery().RESTClient(), k, f.shelf)
			in, factories = probed, append(factories, probed)
		case k.Owners:
			if named == nil {
				named = f.reader.Informers(namespace)
				factories = append(factories, named)
			}
			in = named.ForResource(k.Resource).Informer()
		case k.Custom:
			in = dyn.ForResource(k.Resource).Informer()
		default:
			in = typedInformers[k.Resource](typed)
		}
		if err := f.follow(k, in); err != nil {
			return fmt.Errorf("watch %s: %w", k, err)
		}
	}
	f.factories = append(f.factories, factories...)
	for _, factory := range factories {
		factory.Start(ctx.Done())
	}
	return f.wait(ctx)
}

func (f *Follower) follow(k *cluster.Kind, in cache.SharedIndexInformer) error {
	f.mu.Lock()
	f.informers[k.Name] = in
	f.mu.Unlock()
	if err := in.SetTransform(func(o any) (any, error) {
		t, ok := o.(cluster.Object)
		if !ok {
			return o, nil
		}
		cluster.Trim(t)
		if owner, ok := o.(*metav1.PartialObjectMetadata); ok {
			owner.SetGroupVersionKind(k.Resource.GroupVersion().WithKind(k.API()))
		}
		if err := f.shelf.Share(t); err != nil {
			return nil, fmt.Errorf("keep %s %s: %w", k, t.GetName(), err)
		}
		v1, err := cluster.AsV1(o)
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", k, t.GetName(), err)
		}
		if obj, err := typed(k, v1); err == nil {
			return obj, nil // once, not for every State
		}
		return o, nil
	}); err != nil {
		return err
	}
	if k.Name == "Pod" {
		if err := f.notePods(in); err != nil {
			return err
		}
	}
	return in.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { f.refused(k, in, err) })
}

// OnFailure has failed told of each attempt to go on following a kind that fails, with the
// API server's reason, or NoAnswer. Until one succeeds, what is known of the kind is as old
// as the first of them. It must not ask the Follower.
func (f *Follower) OnFailure(failed func(kind, reason string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = failed
}

// refusedIn takes back the refusals of kinds that may be asked for in a namespace
// instead, and says of each that this is all that is read.
func (f *Follower) refusedIn(namespace string) []*cluster.Kind {
	if namespace == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*cluster.Kind
	for _, k := range f.kinds {
		if k.Namespaced && f.unread[k.Name] == missing(k) {
			delete(f.unread, k.Name)
			f.partial[k.Name] = fmt.Sprintf("%s, so only namespace %s is read", missing(k), namespace)
			delete(f.informers, k.Name)
			out = append(out, k)
		}
	}
	return out
}

func missing(k *cluster.Kind) string {
	return fmt.Sprintf("the right to list %s is missing", k.Resource.GroupResource())
}

// Close stops the informers and waits for them.
func (f *Follower) Close() {
	f.stop()
	for _, factory := range f.factories {
		factory.Shutdown()
	}
}

// refused notes why a kind is not read; the first refusal stands for all.
func (f *Follower) refused(k *cluster.Kind, in cache.SharedIndexInformer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.informers[k.Name] != in: // its place has been taken
	case in.HasSynced(): // it goes on from what it has, and is tried again without end
		if f.fails(k.Name, err); k.Name == "Pod" {
			f.lost = f.now()
		}
	case apierrors.IsForbidden(err):
		f.unread[k.Name] = missing(k)
	case apierrors.IsNotFound(err) && k.Optional:
		f.unread[k.Name] = fmt.Sprintf("%s is not installed", k.Resource.GroupResource())
	default:
		first, again := f.failing[k.Name]
		if !again {
			first.since = f.now()
		}
		f.failing[k.Name] = failure{first.since, err.Error()}
	}
}

// fails tells who counts failures; f.mu is held.
func (f *Follower) fails(kind string, err error) {
	if f.failed != nil {
		f.failed(kind, cmp.Or(string(apierrors.ReasonForError(err)), "NoAnswer"))
	}
}

// Refused says whether an error is the API server's last word, and not that it cannot answer
// now.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// wait returns when every kind is filled, or refused, or has failed for too long.
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
			return nil // what is not there yet is unread
		case <-tick.C:
		}
	}
	return nil
}

func (f *Follower) pending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, in := range f.informers {
		failed, fails := f.failing[name]
		if !in.HasSynced() && f.unread[name] == "" && (!fails || f.now().Sub(failed.since) <= failPatience) {
			return true
		}
	}
	return false
}

// State is the cluster as it is known now.
func (f *Follower) State(ctx context.Context) *cluster.State {
	s := &cluster.State{Now: f.now(), Live: true, Unread: map[string]string{}, Illegible: map[string]string{}, DeviceVersion: f.devices}
	for _, k := range cluster.Kinds() {
		if why := f.notFollowed(k); why != "" && f.informers[k.Name] == nil {
			s.Unread[k.Name] = why
		}
	}
	f.tellOwners(s)
	for _, k := range f.kinds {
		in := f.informers[k.Name]
		if in == nil {
			continue
		}
		for _, o := range in.GetStore().List() {
			obj, err := typed(k, o)
			if err == nil {
				k.Add(s, obj)
			} else if named, ok := o.(cluster.Object); ok {
				s.Illegible[named.GetName()] = err.Error()
			}
		}
		if why := f.whyUnread(k, in); why != "" {
			s.Unread[k.Name] = why
		}
	}
	s.Finish()
	s.DeriveGeometries()
	f.configMaps(ctx, s)
	return s
}

func (f *Follower) notFollowed(k *cluster.Kind) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unread[k.Name]
}

func (f *Follower) whyUnread(k *cluster.Kind, in cache.SharedIndexInformer) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case in.HasSynced():
		return f.partial[k.Name]
	case f.unread[k.Name] != "":
		return f.unread[k.Name]
	case f.failing[k.Name].says != "":
		return f.failing[k.Name].says
	}
	return fmt.Sprintf("it was not listed within %s", syncPatience)
}

// typed turns what an informer holds into the kind's type. The error is of a report that
// is not one.
func typed(k *cluster.Kind, o any) (cluster.Object, error) {
	if r, ok := o.(*report); ok {
		return &r.NodeGeometry, r.illegible
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok || k.Name != nodeprobe.Kind.Kind {
		obj, ok := o.(cluster.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object of the API", o)
		}
		return obj, nil
	}
	var geo nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &geo); err != nil {
		return nil, err
	}
	return &geo, nil
}

// Read takes the cluster in once.
func Read(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time, reader ...owners.Reader) (*cluster.State, error) {
	return ReadFor(ctx, client, custom, now, "", reader...)
}

// ReadFor takes the cluster in once for a question about one namespace: kinds
// that may not be listed everywhere are read there alone, and State.Unread says so.
func ReadFor(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, now func() time.Time, namespace string, reader ...owners.Reader) (*cluster.State, error) {
	f, err := follow(ctx, client, custom, now, namespace, reader)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.State(ctx), nil
}
