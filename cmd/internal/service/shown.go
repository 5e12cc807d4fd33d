package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/service/clients"
)

// Shown is a cluster that is shown on the page, by clients instead of by an address.
type Shown struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// As are the clients of a reader with a token.
	As func(token string) (kubernetes.Interface, dynamic.Interface, error)
	// Cluster is what people call it; Namespace is the executor's.
	Cluster, Namespace string
	// Listener on loopback; it is closed in the end.
	Listener net.Listener
	Logger   *slog.Logger
}

// Show lets the rooms do their work until ctx ends, which is no error, and shows on the page
// what comes of it: the watcher notices, a bus in memory carries, the diagnosis explains.
// Who approves there is heard; somebody else carries plans out.
func Show(ctx context.Context, o Shown) error {
	b, err := bus.Open(ctx, bus.Options{Cluster: o.Cluster, Memory: true})
	if err != nil {
		return err
	}
	defer b.Close()
	s := &Service{client: o.Client, custom: o.Dynamic, now: time.Now, out: io.Discard, logger: o.Logger, registry: prometheus.NewRegistry(), bus: b, listener: o.Listener,
		door: clients.Door{Own: func() (kubernetes.Interface, dynamic.Interface, error) { return o.Client, o.Dynamic, nil }, As: o.As}}
	s.config.Web.Listen, s.config.Web.Cluster, s.config.Remediate.Namespace = o.Listener.Addr().String(), o.Cluster, o.Namespace
	s.config.Watcher.Debounce.Duration = 50 * time.Millisecond
	if s.page, err = s.newPage(ctx); err != nil {
		return err
	}
	p, ctx := parts.New(ctx)
	p.Begin("watch", func() error { return s.watch(ctx) })
	p.Begin("page", func() error { return s.servePage(ctx) })
	p.Begin("diagnose", func() error { return s.diagnose(ctx) })
	if err := p.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
