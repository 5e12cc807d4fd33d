package watcher

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// follow starts the informers; stop waits for them once ctx has ended.
func (w *Watcher) follow(ctx context.Context) (stop func(), err error) {
	factory := informers.NewSharedInformerFactory(w.opts.Client, 0)
	events := informers.NewSharedInformerFactoryWithOptions(w.opts.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("reason", "FailedScheduling").String()
	}))
	w.pods = factory.Core().V1().Pods().Informer()
	// Every kind that a diagnosis follows owners through: were one missing here,
	// the two would not mean the same workload.
	w.owners["ReplicaSet"] = factory.Apps().V1().ReplicaSets().Informer()
	w.owners["Deployment"] = factory.Apps().V1().Deployments().Informer()
	w.owners["StatefulSet"] = factory.Apps().V1().StatefulSets().Informer()
	w.owners["DaemonSet"] = factory.Apps().V1().DaemonSets().Informer()
	w.owners["Job"] = factory.Batch().V1().Jobs().Informer()
	w.owners["CronJob"] = factory.Batch().V1().CronJobs().Informer()
	all := map[string]cache.SharedIndexInformer{"Pod": w.pods, "Event": events.Core().V1().Events().Informer()}
	maps.Copy(all, w.owners)
	for kind, in := range all {
		if err := w.listen(ctx, kind, in); err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	factory.Start(ctx.Done())
	events.Start(ctx.Done())
	return func() { events.Shutdown(); factory.Shutdown() }, nil
}

func (w *Watcher) listen(ctx context.Context, kind string, in cache.SharedIndexInformer) error {
	if err := in.SetTransform(trim); err != nil {
		return err
	}
	if err := in.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.trouble(ctx, kind, err) }); err != nil {
		return err
	}
	_, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
	})
	return err
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

// filled says whether the pods are all there, and the owners, but for those that
// may not be read: their chains end at their names.
func (w *Watcher) filled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, in := range w.owners {
		if !in.HasSynced() && !apierrors.IsForbidden(w.troubles[kind]) {
			return false
		}
	}
	return w.pods.HasSynced()
}

// trim keeps of an object what an incident is made from: a pod of 22 KB becomes
// one of 3, and of everything else only who owns it is left.
func trim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		if m, ok := o.(metav1.Object); ok {
			o = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(),
				ResourceVersion: m.GetResourceVersion(), OwnerReferences: m.GetOwnerReferences()}}
		}
		return o, nil
	}
	p.ManagedFields, p.Annotations, p.Labels = nil, nil, nil
	keep := corev1.PodSpec{NodeName: p.Spec.NodeName, SchedulerName: p.Spec.SchedulerName, SchedulingGates: p.Spec.SchedulingGates,
		Resources: p.Spec.Resources, Overhead: p.Spec.Overhead}
	for _, c := range p.Spec.InitContainers {
		keep.InitContainers = append(keep.InitContainers, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range p.Spec.Containers {
		keep.Containers = append(keep.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	p.Spec = keep
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, Reason: p.Status.Reason, Conditions: p.Status.Conditions}
	return p, nil
}
