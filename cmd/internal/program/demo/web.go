package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/unpend/unpend/cmd/internal/service"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// onPage shows the world on the service's page until ctx ends, and carries out what is approved
// there. With auto the best fix is carried out at once, which the page shows, and goes on showing.
func (d *demo) onPage(ctx context.Context, found diagnosis.Diagnosis) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	defer listener.Close() //nolint:errcheck // who serves it has closed it
	at := "http://" + listener.Addr().String()
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error {
		return service.Show(ctx, service.Shown{Client: d.world.Client(), Dynamic: d.world.Dynamic(), As: d.world.As, Cluster: "demo", Namespace: demoNamespace, Listener: listener, Logger: d.deps.Logger})
	})
	parts.Go(func() error { return d.leads(ctx) })
	parts.Go(func() error {
		if err := d.tellPage(at); err != nil {
			return err
		}
		if d.auto {
			if err := d.fix(ctx, found); err != nil {
				return err
			}
		}
		return d.carryOut(ctx)
	})
	if err := parts.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (d *demo) tellPage(at string) error {
	shows := "and you can approve there."
	if d.auto {
		shows = "and how the best fix is carried out now."
	}
	d.say(fmt.Sprintf("\nOpen %s and sign in with the token %s\nThe page shows this cluster, %s ctrl-C ends it.", at, d.token, shows))
	if d.output != "json" {
		return nil
	}
	return d.events().Emit(map[string]any{"event": "page", "url": at, "token": d.token})
}

// leads holds the lease by which others know that there is an executor.
func (d *demo) leads(ctx context.Context) error {
	client := d.world.Client().CoordinationV1()
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{Name: executor.LeaderLease,
		Lock:          &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: demoNamespace, Name: executor.LeaderLease}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: "demo"}},
		LeaseDuration: pace.Lease, RenewDeadline: pace.Renew, RetryPeriod: pace.Retry,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}}})
	if err != nil {
		return fmt.Errorf("hold the executor's lease: %w", err)
	}
	for ctx.Err() == nil {
		e.Run(ctx)
	}
	return nil
}

// carryOut has the executor look at every plan, as one on a cluster does whenever it changes,
// until ctx ends. What fails is looked at again.
func (d *demo) carryOut(ctx context.Context) error {
	x, store, said := d.executor(), plan.Store{Dynamic: d.deps.Dynamic}, ""
	tick := time.NewTicker(d.deps.Poll)
	defer tick.Stop()
	for {
		all, err := store.List(ctx)
		for i := 0; i < len(all) && err == nil; i++ {
			if !all[i].Status.Phase.Ended() {
				_, err = x.Look(ctx, all[i].Name)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			d.say("  tried again: " + said)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
