package watcher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/watcher/events"
	"github.com/unpend/unpend/watcher/incident"
)

// follow starts the informers; stop waits for them once ctx has ended.
func (w *Watcher) follow(ctx context.Context) (stop func(), err error) {
	factory := informers.NewSharedInformerFactory(w.opts.Client, 0)
	told := events.NewInformer(w.opts.Client, metav1.NamespaceAll)
	w.pods = factory.Core().V1().Pods().Informer()
	for _, k := range incident.Kinds {
		w.owners[k.Kind] = makers[k.Kind](factory)
	}
	queues := w.queues(ctx)
	named := w.named(ctx)
	w.refusing[kindEvent] = told
	w.refusing[kindLimitRange] = factory.Core().V1().LimitRanges().Informer()
	for _, some := range []map[string]cache.SharedIndexInformer{{"Pod": w.pods}, w.owners, w.refusing, w.held} {
		for kind, in := range some {
			if err := w.listen(ctx, kind, in); err != nil {
				return nil, fmt.Errorf("watch %s: %w", kind, err)
			}
		}
	}
	factory.Start(ctx.Done())
	told.Start(ctx.Done())
	named.Start(ctx.Done())
	queues.Start(ctx.Done())
	return func() { told.Shutdown(); factory.Shutdown(); named.Shutdown(); queues.Shutdown() }, nil
}

// makers has the informer of each kind of incident.Kinds.
var makers = map[string]func(informers.SharedInformerFactory) cache.SharedIndexInformer{
	"ReplicaSet": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().ReplicaSets().Informer()
	},
	"Deployment": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().Deployments().Informer()
	},
	"StatefulSet": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().StatefulSets().Informer()
	},
	"DaemonSet": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Apps().V1().DaemonSets().Informer()
	},
	"Job": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Batch().V1().Jobs().Informer()
	},
	"CronJob": func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Batch().V1().CronJobs().Informer()
	},
}

// named makes the informers of the kinds of owners that the configuration names and that the
// API server serves, and says which it does not.
func (w *Watcher) named(ctx context.Context) metadatainformer.SharedInformerFactory {
	factory, found := w.opts.Owners.Informers(metav1.NamespaceAll), w.opts.Owners.Served(ctx, w.opts.Client.Discovery())
	for _, k := range found.Kinds {
		if w.held[k.Name()] != nil { // who owns it is read there
			continue
		}
		w.owners[k.Name()] = factory.ForResource(k.Resource).Informer()
	}
	for _, name := range found.Absent {
		w.opts.Logger.WarnContext(ctx, "a kind of owners is not installed, and is not looked for before the next start", "kind", name)
	}
	for name, err := range found.Untold {
		w.opts.Logger.WarnContext(ctx, "a kind of owners is not read", "kind", name, "error", err)
	}
	return factory
}

const (
	kindEvent      = "Event"
	kindLimitRange = "LimitRange"
)

func (w *Watcher) listen(ctx context.Context, kind string, in cache.SharedIndexInformer) error {
	if err := in.SetTransform(trim); err != nil {
		return err
	}
	if err := in.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.trouble(ctx, kind, err) }); err != nil {
		return err
	}
	_, err := in.AddEventHandler(cache.FilteringResourceEventHandler{FilterFunc: tells(kind), Handler: cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.poke() },
		UpdateFunc: func(old, changed any) {
			switch o := changed.(type) {
			case *corev1.Pod:
				w.noteChanged(old.(*corev1.Pod), o)
			case *metav1.PartialObjectMetadata: // some write their status all the time
				if equality.Semantic.DeepEqual(o.OwnerReferences, old.(*metav1.PartialObjectMetadata).OwnerReferences) {
					return
				}
			case *incident.Held: // its queue says how it stands all the time
				if o.Same(old.(*incident.Held)) {
					return
				}
			}
			w.poke()
		},
		DeleteFunc: func(o any) {
			if unseen, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unseen.Obj
			}
			w.noteDeleted(kind, o)
			w.poke()
		},
	}})
	return err
}

// tells is whether an object tells of what waits: of Events those alone that trim leaves
// whole, and so none that tells people of a diagnosis.
func tells(kind string) func(any) bool {
	return func(o any) bool {
		if unseen, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = unseen.Obj
		}
		_, whole := o.(*corev1.Event)
		return whole || kind != kindEvent
	}
}

func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // a pass is due already
	}
}

// trouble says once what cannot be read; client-go tries again by itself.
func (w *Watcher) trouble(ctx context.Context, kind string, err error) {
	w.mu.Lock()
	before := w.troubles[kind]
	w.troubles[kind] = err
	w.mu.Unlock()
	if ctx.Err() == nil && (before == nil || before.Error() != err.Error()) {
		w.opts.Logger.WarnContext(ctx, "watching fails and is tried again", "kind", kind, "error", err)
	}
}

// filled says whether the pods are all there, and the owners and what tells of
// their refusals, but for those that may not be read: chains of owners end at their
// names then, and a refusal that only an event tells is not found.
func (w *Watcher) filled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, some := range []map[string]cache.SharedIndexInformer{w.owners, w.refusing, w.held} {
		for kind, in := range some {
			err := w.troubles[kind]
			if gone := apierrors.IsNotFound(err) && !incident.OwnKind(kind); !in.HasSynced() && !apierrors.IsForbidden(err) && !gone {
				return false
			}
		}
	}
	return w.pods.HasSynced()
}
