package watcher

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Options of a Watcher; the durations have defaults.
type Options struct {
	Client kubernetes.Interface
	// Publish hands an incident on. It is called again with the same incident
	// until it succeeds; a repeat must be harmless.
	Publish func(context.Context, Incident) error
	// Sweep is how often everything is looked at without any signal: what neither
	// a watch nor an event told of is found then. 60 s by default.
	Sweep time.Duration
	// Debounce gathers the signals of a storm into one pass; 200 ms by default.
	Debounce   time.Duration
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Watcher publishes an Incident whenever what waits has changed.
type Watcher struct {
	opts      Options
	pods      cache.SharedIndexInformer
	owners    map[string]cache.SharedIndexInformer
	wake      chan struct{}
	last      map[string]string   // incident → id of the message published last
	known     map[string]Incident // what was published last and still waited
	published *prometheus.CounterVec
}

// New makes a Watcher; Run runs it.
func New(opts Options) (*Watcher, error) {
	if opts.Sweep == 0 {
		opts.Sweep = time.Minute
	}
	if opts.Debounce == 0 {
		opts.Debounce = 200 * time.Millisecond
	}
	w := &Watcher{opts: opts, wake: make(chan struct{}, 1), last: map[string]string{}, known: map[string]Incident{}, owners: map[string]cache.SharedIndexInformer{},
		published: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_incidents_published_total", Help: "Incidents published, by whether they were resolved."}, []string{"resolved"})}
	if err := opts.Registerer.Register(w.published); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return w, nil
}

// Run watches until ctx ends and then waits for what it started.
func (w *Watcher) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(w.opts.Client, 0)
	events := informers.NewSharedInformerFactoryWithOptions(w.opts.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("reason", "FailedScheduling").String()
	}))
	w.pods = factory.Core().V1().Pods().Informer()
	w.owners["ReplicaSet"] = factory.Apps().V1().ReplicaSets().Informer()
	w.owners["Job"] = factory.Batch().V1().Jobs().Informer()
	for _, in := range []cache.SharedIndexInformer{w.pods, w.owners["ReplicaSet"], w.owners["Job"], events.Core().V1().Events().Informer()} {
		if err := in.SetTransform(trim); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if _, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.poke() }, UpdateFunc: func(_, _ any) { w.poke() }, DeleteFunc: func(any) { w.poke() },
		}); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	factory.Start(ctx.Done())
	events.Start(ctx.Done())
	defer events.Shutdown()
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), w.pods.HasSynced, w.owners["ReplicaSet"].HasSynced, w.owners["Job"].HasSynced) {
		return ctx.Err()
	}
	return w.loop(ctx)
}

func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // a pass is due already
	}
}

func (w *Watcher) loop(ctx context.Context) error {
	sweep := time.NewTicker(w.opts.Sweep)
	defer sweep.Stop()
	for {
		w.pass(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			continue
		case <-w.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.opts.Debounce):
		}
	}
}

// pass looks at every pod and publishes what has changed since the last pass,
// whatever told of it.
func (w *Watcher) pass(ctx context.Context) {
	objs := w.pods.GetStore().List()
	pods := make([]*corev1.Pod, 0, len(objs))
	for _, o := range objs {
		pods = append(pods, o.(*corev1.Pod))
	}
	now := map[string]bool{}
	for _, i := range Group(pods, w.owner) {
		now[i.ID] = true
		w.publish(ctx, i)
	}
	for id, i := range w.known {
		if !now[id] {
			i.Resolved, i.Pods, i.Waiting = true, []PodRef{}, 0
			w.publish(ctx, i)
		}
	}
}

func (w *Watcher) owner(kind, namespace, name string) (metav1.Object, bool) {
	in := w.owners[kind]
	if in == nil {
		return nil, false
	}
	o, ok, err := in.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	m, ok := o.(metav1.Object)
	return m, ok
}

// publish hands news on and keeps at it until it is taken: nothing is forgotten
// because a broker was away.
func (w *Watcher) publish(ctx context.Context, i Incident) {
	id, _, err := i.Message()
	if err != nil || w.last[i.ID] == id {
		return
	}
	forever := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithMaxInterval(10*time.Second))
	err = backoff.RetryNotify(func() error { return w.opts.Publish(ctx, i) }, backoff.WithContext(forever, ctx), func(err error, next time.Duration) {
		w.opts.Logger.WarnContext(ctx, "incident is published again later", "incident", i.ID, "error", err, "in", next)
	})
	if err != nil {
		return // the context ended; the next start finds the incident again
	}
	w.published.WithLabelValues(fmt.Sprint(i.Resolved)).Inc()
	if i.Resolved {
		delete(w.known, i.ID)
		delete(w.last, i.ID)
		return
	}
	w.last[i.ID], w.known[i.ID] = id, i
}

// trim keeps of an object what an incident is made from: a pod of 22 KB becomes
// one of 3.
func trim(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	p.Labels = nil
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
