package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/analyst"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
)

// Once lets the rooms do their work until an incident is explained that is wanted: the
// watcher notices, a bus in memory carries, the diagnosis explains. The error says why there
// is no diagnosis; that of ctx, where none came in time.
func Once(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, logger *slog.Logger, wanted func(incident.Incident) bool) (diagnosis.Diagnosis, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := bus.Open(ctx, bus.Options{Cluster: "once", Memory: true})
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	defer b.Close()
	f, err := live.Follow(ctx, client, custom, time.Now)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	defer f.Close()
	registry := prometheus.NewRegistry()
	a, err := analyst.New(f, logger, registry)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	defer a.Close()
	w, err := watcher.New(watcher.Options{Client: client, Publish: publishIncident(b), Debounce: 50 * time.Millisecond, Logger: logger, Registerer: registry})
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	var found diagnosis.Diagnosis
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return w.Run(ctx) })
	parts.Go(func() error {
		return b.Consume(ctx, bus.Incidents, "once", func(ctx context.Context, _ string, body []byte) error {
			var i incident.Incident
			if err := json.Unmarshal(body, &i); err != nil {
				return fmt.Errorf("read an incident: %w", err)
			}
			if !wanted(i) {
				return nil
			}
			diagnosis, ok, err := a.Explain(ctx, i, time.Time{})
			if ok {
				found = diagnosis
				cancel() // that is all that was asked for
			}
			return err
		})
	})
	err = parts.Wait()
	if found.Incident != "" {
		return found, nil
	}
	if err == nil {
		err = ctx.Err()
	}
	return diagnosis.Diagnosis{}, fmt.Errorf("wait for the diagnosis: %w", err)
}
