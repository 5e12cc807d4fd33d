// Package lead elects, by a lease, which of several processes does its work: the others stand
// by, warm. Which parts ask it, and what they do then, is the service's.
package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/unpend/unpend/remediate/pace"
)

// analystLease is the lease whose holder publishes incidents and diagnoses; of processes that
// do one of these only, each kind has a lease of its own.
const analystLease = "unpend-analyst"

// notifierLease is that of processes that only tell people.
const notifierLease = "unpend-notifier"

// Lead is whether this process publishes, or stands by, warm, for the one that does. A nil
// one publishes always.
type Lead struct {
	lock   resourcelock.Interface
	logger *slog.Logger

	mu      sync.Mutex
	term    context.Context // ends when it leads no more; nil before the first
	changed chan struct{}   // closed at the next term
	trouble error           // of the last request about the lease
	told    *seldom
}

// Options say who leads, and by which lease.
type Options struct {
	REST       *rest.Config // it has clients of its own, for a storm of reading must not hold up the lease
	Namespace  string       // of the lease
	Roles      []string     // of this process
	Identity   string
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// New makes one that does not lead yet.
func New(o Options) (*Lead, error) {
	config := rest.CopyConfig(o.REST)
	config.Timeout = pace.Renew / 2
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the lease: %w", err)
	}
	l := &Lead{logger: o.Logger, changed: make(chan struct{}), told: NewSeldom(o.Now)}
	l.lock = &noted{l, &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: leaseOf(o.Roles)},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity}}}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "unpend_leads", Help: "1 where this process does its work, 0 where it stands by for another."}, func() float64 {
		if l.Leads(context.Background()) == nil {
			return 0
		}
		return 1
	})
	if err := o.Registerer.Register(gauge); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return l, nil
}

func leaseOf(roles []string) string {
	switch {
	case !slices.Contains(roles, "diagnose") && !slices.Contains(roles, "watch"):
		return notifierLease
	case !slices.Contains(roles, "diagnose"):
		return analystLease + "-watch"
	case !slices.Contains(roles, "watch"):
		return analystLease + "-diagnose"
	}
	return analystLease
}

// Run takes the lease whenever it can be had, until ctx ends; then it gives it back.
func (l *Lead) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{Name: "analyst", Lock: l.lock, ReleaseOnCancel: true,
			LeaseDuration: pace.Lease, RenewDeadline: pace.Renew, RetryPeriod: pace.Retry,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: l.begin, OnStoppedLeading: func() {
				l.logger.InfoContext(ctx, "does not lead", "lease", l.lock.Describe())
			}}})
		if err != nil {
			return fmt.Errorf("elect who diagnoses: %w", err)
		}
		e.Run(ctx)
	}
	return nil
}

func (l *Lead) begin(term context.Context) {
	l.logger.InfoContext(term, "leads", "lease", l.lock.Describe())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
	close(l.changed)
	l.changed = make(chan struct{})
}

// Wait is the context of the term in which this process leads, once it does; the error is
// that of ctx.
func (l *Lead) Wait(ctx context.Context) (context.Context, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var next chan struct{}
		if l != nil {
			l.mu.Lock()
			next = l.changed
			l.mu.Unlock()
		}
		if term := l.Leads(ctx); term != nil {
			return term, nil
		}
		select {
		case <-ctx.Done():
		case <-next:
		}
	}
}

// Leads is the context of the term, or nil when another leads, or nobody.
func (l *Lead) Leads(ctx context.Context) context.Context {
	if l == nil {
		return ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || l.term.Err() != nil {
		return nil
	}
	return l.term
}

// Standing says for /readyz whether it leads or stands by; the error says why nobody can
// know.
func (l *Lead) Standing() (string, error) {
	if l.Leads(context.Background()) != nil {
		return "ok", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble != nil {
		return "", fmt.Errorf("who leads is not known, lease %s: %w", l.lock.Describe(), l.trouble)
	}
	return "ok, standby", nil
}

// noted is a lock that tells the lead what is wrong with it: client-go only logs that.
type noted struct {
	*Lead
	resourcelock.Interface
}

// Get implements resourcelock.Interface.
func (n *noted) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := n.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) { // it is created next
		n.note(ctx, err) //nolint:errcheck // returned as it is
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (n *noted) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return n.note(ctx, n.Interface.Create(ctx, r))
}

// Update implements resourcelock.Interface.
func (n *noted) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return n.note(ctx, n.Interface.Update(ctx, r))
}

// note keeps an error, and tells of it, unless it says that another was faster.
func (n *noted) note(ctx context.Context, err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trouble = err; apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		n.trouble = nil
	}
	if n.trouble != nil && !errors.Is(err, context.Canceled) && n.told.Due("lease") {
		n.logger.ErrorContext(ctx, "who leads is not known, and this process publishes nothing until it leads", "lease", n.lock.Describe(), "error", err)
	}
	return err
}
