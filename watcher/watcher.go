package watcher

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// Options of a Watcher; the durations have defaults.
type Options struct {
	Client kubernetes.Interface
	// Dynamic reads the objects of queues that hold workloads before these have pods, where the
	// API server serves any; without it they are not seen.
	Dynamic dynamic.Interface
	// Publish hands an incident on. After an error it is called again, later and
	// with what is true by then; a repeat must be harmless.
	Publish func(context.Context, incident.Incident) error
	// Published tells what any watcher published last of each incident. It is
	// asked at the start, so what was resolved while nobody watched is told, and at
	// every sweep, so what another watcher got wrong is put right. Without it this
	// watcher takes what it published itself for all there is.
	Published func(context.Context) ([]incident.Incident, error)
	// Again has what was published asked for at once, and what is missing published again:
	// it receives when the broker takes messages again, or has lost what it had.
	Again <-chan struct{}
	// Lead waits until this watcher is the one that publishes; the context that it returns
	// ends when it is that no more. Meanwhile all is followed and nothing is published.
	// Without it this watcher always is.
	Lead func(context.Context) (context.Context, error)
	// Owners are the kinds of owners that are read beside Kubernetes' own: those that a diagnosis
	// reads. None by default.
	Owners owners.Reader
	// Sweep is how often the API server is asked what waits, without any signal:
	// what neither a watch nor an event told of is found then. 60 s by default.
	Sweep time.Duration
	// Debounce gathers the signals of a storm into one pass; 200 ms by default.
	Debounce time.Duration
	// Now is time.Now where it is nil.
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// maxRetry is the longest pause between two tries to publish.
const maxRetry = 10 * time.Second

// Watcher publishes an Incident whenever what waits has changed.
type Watcher struct {
	opts   Options
	pods   cache.SharedIndexInformer
	owners map[string]cache.SharedIndexInformer // by kind, as an incident.Ref names it
	// refusing is what tells, beside the owners, of pods that were refused.
	refusing map[string]cache.SharedIndexInformer
	// held are the objects of queues, by kind as owners are.
	held      map[string]cache.SharedIndexInformer
	wake      chan struct{}
	last      map[string]string            // incident → id of the message published last
	known     map[string]incident.Incident // what was published last and still waited
	swept     sweep
	published *prometheus.CounterVec
	waited    prometheus.Histogram

	mu sync.Mutex // guards what the informers' goroutines note
	// left is, by incident, the newest resourceVersion of a pod that waits no more.
	left map[string]string
	gone map[types.UID]bool // deleted since the last sweep began
	// former are owners that were deleted since the sweep before the last: their pods
	// go after them, and are the same workload until then.
	former [2]map[incident.Ref]metav1.Object
	// troubles are the kinds that cannot be read, and why.
	troubles map[string]error
}

// New makes a Watcher; Run runs it.
func New(opts Options) (*Watcher, error) {
	if opts.Sweep == 0 {
		opts.Sweep = time.Minute
	}
	if opts.Debounce == 0 {
		opts.Debounce = 200 * time.Millisecond
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	w := &Watcher{opts: opts, wake: make(chan struct{}, 1), last: map[string]string{}, known: map[string]incident.Incident{}, owners: map[string]cache.SharedIndexInformer{}, refusing: map[string]cache.SharedIndexInformer{}, held: map[string]cache.SharedIndexInformer{},
		left: map[string]string{}, gone: map[types.UID]bool{}, former: [2]map[incident.Ref]metav1.Object{{}, {}}, troubles: map[string]error{},
		published: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_incidents_published_total", Help: "Incidents published, by whether they were resolved."}, []string{"resolved"}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "unpend_incident_duration_seconds", Help: "How long incidents waited that are resolved: from their oldest pod's wait until none waited any more.",
			Buckets: prometheus.ExponentialBuckets(4, 4, 9)})} // 4 s to 3 days
	for _, c := range []prometheus.Collector{w.published, w.waited} {
		if err := opts.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return w, nil
}

// Run watches until ctx ends and then waits for what it started.
func (w *Watcher) Run(ctx context.Context) error {
	stop, err := w.follow(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), w.filled) {
		return ctx.Err()
	}
	for {
		term, ok := w.standBy(ctx)
		if !ok {
			return nil
		}
		if w.begin(term) == nil { // else it ended
			w.loop(term)
		}
	}
}

// begin asks what was published before, again and again, until it has an answer.
func (w *Watcher) begin(ctx context.Context) error {
	return backoff.RetryNotify(func() error { return w.recall(ctx) }, backoff.WithContext(retries(), ctx), func(err error, next time.Duration) {
		w.opts.Logger.WarnContext(ctx, "what was published before is asked for again later", "error", err, "in", next)
	})
}

// recall takes over what was published last, by this watcher or another.
func (w *Watcher) recall(ctx context.Context) error {
	if w.opts.Published == nil {
		return nil
	}
	before, err := w.opts.Published(ctx)
	if err != nil {
		return err
	}
	clear(w.last)
	clear(w.known)
	for _, i := range before {
		w.mark(i.ID, i.Newest) // what is told next tells of a later moment
		if id, _, err := i.Message(); err == nil && !i.Resolved {
			w.last[i.ID], w.known[i.ID] = id, i
		}
	}
	return nil
}

// retries is the pauses after errors: half a second, growing, for ever.
func retries() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(0), backoff.WithMaxInterval(maxRetry))
}

func (w *Watcher) loop(ctx context.Context) {
	due := time.NewTicker(w.opts.Sweep)
	defer due.Stop()
	pauses := retries()
	for {
		wake := w.wake
		var again <-chan time.Time
		if w.pass(ctx) {
			pauses.Reset()
		} else {
			wake, again = nil, time.After(pauses.NextBackOff()) // a storm must not hurry the tries
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			w.sweep(ctx)
			continue
		case <-again:
			continue
		case <-w.opts.Again:
			if err := w.recall(ctx); err != nil && ctx.Err() == nil {
				w.opts.Logger.WarnContext(ctx, "what was published is asked for again at the next sweep", "error", err)
			}
			continue
		case <-wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.opts.Debounce):
		}
	}
}

// pass looks at every pod and publishes what has changed since the last pass,
// whatever told of it. It says whether all of that was taken: what was not is
// not known, so the next pass finds it again.
func (w *Watcher) pass(ctx context.Context) bool {
	waiting := map[string]bool{}
	failed := 0
	var first error
	publish := func(i incident.Incident) {
		if err := w.publish(ctx, i); err != nil {
			if failed++; first == nil {
				first = err
			}
		}
	}
	pods := w.view()
	for _, i := range incident.Group(pods, w.owner, w.makers().Refusals(pods, w.owner)...) {
		waiting[i.ID] = true
		publish(w.dated(i))
	}
	for _, id := range slices.Sorted(maps.Keys(w.known)) {
		if !waiting[id] {
			publish(w.dated(w.settled(w.known[id])))
		}
	}
	if failed > 0 {
		if ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "incidents are published again later", "incidents", failed, "error", first)
		}
		return false
	}
	w.forget(waiting)
	return true
}

// publish hands news on.
func (w *Watcher) publish(ctx context.Context, i incident.Incident) error {
	id, _, err := i.Message()
	if err != nil || w.last[i.ID] == id {
		return err
	}
	if err := w.opts.Publish(ctx, i); err != nil {
		return err
	}
	w.published.WithLabelValues(fmt.Sprint(i.Resolved)).Inc()
	if i.Resolved {
		if before, ok := w.known[i.ID]; ok && !before.Since.IsZero() {
			w.waited.Observe(w.opts.Now().Sub(before.Since).Seconds())
		}
		delete(w.known, i.ID)
		delete(w.last, i.ID)
		return nil
	}
	w.last[i.ID], w.known[i.ID] = id, i
	return nil
}
