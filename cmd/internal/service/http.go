package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readiness is whether the service does its work.
type readiness struct {
	filled atomic.Bool
	check  func() error
	leads  func() (string, error) // set before it is asked; nil: nobody is elected
	queue  atomic.Pointer[func() time.Time]
	sinks  atomic.Pointer[[]*sink] // one that fails is told of, and makes nobody unready
	parts  sync.Map                // that are off, and why: strings
}

// off says that a part does not work, and why; on, that it does. What is off makes nobody unready.
func (r *readiness) off(part string, why error) { r.parts.Store(part, why.Error()) }
func (r *readiness) on(part string)             { r.parts.Delete(part) }

// whatIsOff is a line for each part.
func (r *readiness) whatIsOff() []string {
	var out []string
	r.parts.Range(func(part, why any) bool {
		out = append(out, fmt.Sprintf("%v: %v", part, why))
		return true
	})
	slices.Sort(out)
	return out
}

func (r *readiness) set() { r.filled.Store(true) }

// stuck has it ask since when nothing of what is due was done.
func (r *readiness) stuck(since func() time.Time) { r.queue.Store(&since) }

// longestStuck is above the worst diagnosis.
const longestStuck = time.Minute

// moves says that work is due and none is done.
func (r *readiness) moves() error {
	queue := r.queue.Load()
	if queue == nil {
		return nil
	}
	if since := (*queue)(); !since.IsZero() && time.Since(since) > longestStuck {
		return fmt.Errorf("diagnoses are stuck: some are due, and none was made since %s", since.UTC().Format(time.RFC3339))
	}
	return nil
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !r.filled.Load() {
		http.Error(w, "the cluster is still being read", http.StatusServiceUnavailable)
		return
	}
	if r.check != nil {
		if err := r.check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	if err := r.moves(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	says := "ok"
	if r.leads != nil {
		var err error
		if says, err = r.leads(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	if sinks := r.sinks.Load(); sinks != nil {
		for _, k := range *sinks {
			if trouble := k.standing(); trouble != "" {
				says += "\n" + trouble
			}
		}
	}
	for _, line := range r.whatIsOff() {
		says += "\n" + line
	}
	fmt.Fprintln(w, says)
}

// serveHTTP serves /metrics, /healthz and /readyz until ctx ends.
func serveHTTP(ctx context.Context, address string, registry *prometheus.Registry, ready *readiness) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/readyz", ready)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return serve(ctx, "metrics", address, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second})
}

// serve serves what an address is there for until ctx ends.
func serve(ctx context.Context, what, address string, s *http.Server) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve %s on %s: %w", what, address, err)
	}
	stop := context.AfterFunc(ctx, func() {
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		s.Shutdown(quiet) //nolint:errcheck // what is left after 3 s is dropped
	})
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}
