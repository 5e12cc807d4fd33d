package fairqueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/unpend/unpend/watcher/incident"
)

// Options of a Queue; the numbers have defaults.
type Options struct {
	// Diagnose explains an incident as it is known last, from what was read of the cluster
	// no earlier than at a time. It says whether that is news: what is none is looked at
	// less often.
	Diagnose func(ctx context.Context, i incident.Incident, read time.Time) (news bool, err error)
	// GiveUp is told, once, of an incident that could not be diagnosed in three tries. It is
	// tried again when there is news of it, and every few minutes.
	GiveUp func(ctx context.Context, i incident.Incident, why error)
	// PerNamespace is how many incidents of a namespace are looked at: 500. The others wait
	// until one of those is gone; a tenant with more has all of them alike.
	PerNamespace int
	// Settle gathers the changes of the cluster for so long: 500 ms.
	Settle     time.Duration
	Registerer prometheus.Registerer
	Now        func() time.Time
}

const (
	tries = 3
	// retryIn is the pause after the first failure; the next is twice as long.
	retryIn = 2 * time.Second
	// firstPace and lastPace bound how often an incident is looked at whose last diagnosis
	// was no news: the longer nothing but its counts change, the less often.
	firstPace, lastPace = time.Second, 30 * time.Second
	// drained is how long changes wait at most for what is due already.
	drained = 5 * time.Second
	// unasked is how long an incident goes without being looked at: reports grow old and
	// time-outs pass without anybody telling.
	unasked = 5 * time.Minute
	// rest is how much longer nothing is looked at again for changes of the cluster than
	// looking took: a cluster that never stands still gets a quarter of a processor.
	rest = 3
)

// Queue holds the incidents that wait, and has each diagnosed in its turn.
type Queue struct {
	opts    Options
	due     workqueue.TypedDelayingInterface[key]
	wake    chan struct{} // something of the cluster changed
	late    prometheus.Histogram
	mu      sync.Mutex
	tenants map[string]*tenant // by namespace
	changed map[string]bool    // namespaces; "" is all
	settled time.Time          // until when changes were heard of that had all looked at again
	ended   time.Time          // when the last look did
	busy    time.Duration      // looking again took so long since then
}

// New makes a Queue; Run has it work.
func New(opts Options) (*Queue, error) {
	if opts.PerNamespace == 0 {
		opts.PerNamespace = 500
	}
	if opts.Settle == 0 {
		opts.Settle = 500 * time.Millisecond
	}
	q := &Queue{opts: opts, wake: make(chan struct{}, 1), tenants: map[string]*tenant{}, changed: map[string]bool{},
		late: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "unpend_diagnosis_delay_seconds", Help: "From the news of an incident to its diagnosis.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 16)})}
	q.due = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: newTurns()})})
	for _, c := range []prometheus.Collector{q.late,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "unpend_incidents_due", Help: "Incidents whose diagnosis is due."}, func() float64 { return float64(q.due.Len()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "unpend_incidents_left", Help: "Incidents that are not looked at, for their namespace has too many."}, q.countLeft)} {
		if err := opts.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return q, nil
}

// Run diagnoses what is due until ctx ends, one incident at a time, and waits for what it
// started. It is run once.
func (q *Queue) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	stop := context.AfterFunc(ctx, q.due.ShutDown)
	defer stop()
	parts.Go(func() { q.follow(ctx) })
	for {
		k, ended := q.due.Get()
		if ended {
			return
		}
		q.look(ctx, k)
		q.due.Done(k)
	}
}
