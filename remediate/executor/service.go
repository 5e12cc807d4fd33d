package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// LeaderLease is the lease whose holder carries plans out.
const LeaderLease = "unpend-executor"

// shutdown is how long a step under way may take to get to a safe point.
const shutdown = 8 * time.Second

// How soon a plan is looked at again that could not be read or written: by default the
// pause would grow to a quarter of an hour, long after the API server is back.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Run carries plans out, as one of possibly several: the holder of the lease does, under
// the name of identity. It ends with the context, at a safe point: the next
// leader goes on from the journal.
func (x *Executor) Run(ctx context.Context, config *rest.Config, identity string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("make the scheme: %w", err)
	}
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: LeaderLease},
		Client: x.Client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(x.Logger.Handler()), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(pace.Lease), RenewDeadline: new(pace.Renew), RetryPeriod: new(pace.Retry),
		GracefulShutdownTimeout: new(shutdown),
	})
	if err != nil {
		return fmt.Errorf("make the executor: %w", err)
	}
	x.Leads = x.leads(lock)
	toPlan := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: v1alpha1.PlanOf(o.GetName())}}}
	}
	// Their names are enough: one that cannot be read would else end the watch of all.
	err = ctrl.NewControllerManagedBy(m).Named("remediation").For(&v1alpha1.Remediation{}, builder.OnlyMetadata).
		Watches(&v1alpha1.Approval{}, handler.EnqueueRequestsFromMapFunc(toPlan), builder.OnlyMetadata).
		// One at a time: the guard-rails judge a plan in the world that the one before left.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: new(true), RateLimiter: x.retries}).Complete(x)
	if err != nil {
		return fmt.Errorf("make the executor: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return x.watchBreaker(ctx, m.GetClient()) })); err != nil {
		return fmt.Errorf("make the breaker: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return x.watchEnds(ctx, m.GetClient()) })); err != nil {
		return fmt.Errorf("make what tells of ends: %w", err)
	}
	if err := x.metrics.register(x.Registerer); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("carry plans out: %w", err)
	}
	return nil
}

// leads reads the lease itself before every step: an executor that was stopped for a while
// may believe that it leads still.
func (x *Executor) leads(lock *resourcelock.LeaseLock) func(context.Context) (string, int64, error) {
	return func(ctx context.Context) (string, int64, error) {
		l, err := x.Client.CoordinationV1().Leases(x.Namespace).Get(ctx, LeaderLease, metav1.GetOptions{})
		if err != nil {
			return "", 0, fmt.Errorf("read who leads: %w", err)
		}
		if holder := ptr.Deref(l.Spec.HolderIdentity, ""); holder != lock.Identity() {
			return "", 0, fmt.Errorf("%q leads now, we are %q", holder, lock.Identity())
		}
		return lock.Identity(), int64(ptr.Deref(l.Spec.LeaseTransitions, 0)), nil
	}
}

// breakerEvery is how often the breaker looks at the nodes, from a cache, and at the plans.
const breakerEvery = 2 * time.Second

// watchBreaker opens the breaker when it has to; only a person closes it.
func (x *Executor) watchBreaker(ctx context.Context, cached client.Reader) error {
	tick := time.NewTicker(breakerEvery)
	defer tick.Stop()
	for {
		if err := x.checkBreaker(ctx, cached); err != nil && ctx.Err() == nil {
			x.Logger.WarnContext(ctx, "the breaker could not be looked at", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (x *Executor) checkBreaker(ctx context.Context, cached client.Reader) error {
	r, err := x.rails().read(ctx)
	if r.there {
		err = errors.Join(err, x.rails().remember(ctx))
	}
	if err != nil {
		return err
	}
	x.metrics.stopped(r.breaker.Open, r.paused)
	if r.breaker.Open {
		return nil
	}
	var nodes corev1.NodeList
	plans, err := x.store.List(ctx)
	if err := errors.Join(err, cached.List(ctx, &nodes)); err != nil {
		return fmt.Errorf("list nodes and plans: %w", err)
	}
	view := guard.View{Now: x.Now(), Plans: plans}
	for i := range nodes.Items {
		view.Nodes = append(view.Nodes, &nodes.Items[i])
	}
	why, open := r.limits.Tripped(view, r.breaker.ResetAt)
	if !open {
		return nil
	}
	r.breaker.Open, r.breaker.Why, r.breaker.Since = true, why, x.Now()
	x.Logger.ErrorContext(ctx, "the breaker is open: nothing is carried out until a person resets it", "why", why)
	x.metrics.stopped(true, r.paused)
	return x.rails().setBreaker(ctx, r.breaker)
}
