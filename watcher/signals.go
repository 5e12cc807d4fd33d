package watcher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/watcher/events"
)

// follow starts the informers; stop waits for them once ctx has ended.
func (w *Watcher) follow(ctx context.Context) (stop func(), err error) {
	factory := informers.NewSharedInformerFactory(w.opts.Client, 0)
	told := events.NewInformer(w.opts.Client, metav1.NamespaceAll)
	w.pods = factory.Core().V1().Pods().Informer()
	// Every kind that a diagnosis follows owners through: were one missing here,
	// the two would not mean the same workload.
	w.owners["ReplicaSet"] = factory.Apps().V1().ReplicaSets().Informer()
	w.owners["Deployment"] = factory.Apps().V1().Deployments().Informer()
	w.owners["StatefulSet"] = factory.Apps().V1().StatefulSets().Informer()
	w.owners["DaemonSet"] = factory.Apps().V1().DaemonSets().Informer()
	w.owners["Job"] = factory.Batch().V1().Jobs().Informer()
	w.owners["CronJob"] = factory.Batch().V1().CronJobs().Informer()
	w.refusing[kindEvent] = told
	w.refusing[kindLimitRange] = factory.Core().V1().LimitRanges().Informer()
	for _, some := range []map[string]cache.SharedIndexInformer{{"Pod": w.pods}, w.owners, w.refusing} {
		for kind, in := range some {
			if err := w.listen(ctx, kind, in); err != nil {
				return nil, fmt.Errorf("watch %s: %w", kind, err)
			}
		}
	}
	factory.Start(ctx.Done())
	told.Start(ctx.Done())
	return func() { told.Shutdown(); factory.Shutdown() }, nil
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
			if p, ok := changed.(*corev1.Pod); ok {
				w.noteChanged(old.(*corev1.Pod), p)
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
	for _, some := range []map[string]cache.SharedIndexInformer{w.owners, w.refusing} {
		for kind, in := range some {
			if !in.HasSynced() && !apierrors.IsForbidden(w.troubles[kind]) {
				return false
			}
		}
	}
	return w.pods.HasSynced()
}
