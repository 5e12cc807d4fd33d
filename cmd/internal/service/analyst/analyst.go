// Package analyst explains incidents over a copy of the cluster that is kept up to date: those
// that the watcher tells of, and those that somebody asks about on an object. Which incident is
// next, and who is told, is the service's.
package analyst

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

const (
	// catchUp is how long a diagnosis waits for what its incident tells of: the
	// watcher and the copy of the cluster hear of it one by one.
	catchUp = 2 * time.Second
	// shared is how long incidents are explained from one reading of the cluster, and sharedOf
	// how often as long as that took, where this is more: a large cluster, or a machine that has
	// much to do, must not be read once for each. What has changed since is looked at again
	// anyhow, and never from a reading that is older.
	shared, sharedOf = 300 * time.Millisecond, 3
)

// Analyst explains incidents over a copy of the cluster that is kept up to date.
type Analyst struct {
	follower *live.Follower
	keeper   *keeper
	Opts     rca.Options
	session  *rca.Session
	begun    time.Time
	took     time.Duration // to begin the session
	seconds  prometheus.Histogram
	Causes   *prometheus.CounterVec
}

// New explains what a follower keeps up to date.
func New(f *live.Follower, logger *slog.Logger, registry prometheus.Registerer) (*Analyst, error) {
	a := &Analyst{follower: f, keeper: &keeper{}, Opts: rca.Options{Logger: logger},
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "unpend_diagnosis_duration_seconds", Help: "How long one diagnosis took.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
		Causes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_incidents_total", Help: "Diagnoses that were news, by root cause."}, []string{"cause"})}
	for _, c := range []prometheus.Collector{a.seconds, a.Causes} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return a, nil
}

// Close lets go of the copy.
func (a *Analyst) Close() {
	a.end()
	a.keeper.close()
}

func (a *Analyst) end() {
	if a.session != nil {
		a.session.Close()
		a.session = nil
	}
}

// caughtUp is the state once it knows what the incident tells of: its pods or, where
// it lacks some, who refused them. What never comes is diagnosed without.
func (a *Analyst) caughtUp(ctx context.Context, i incident.Incident) *cluster.State {
	if i.Missing == 0 {
		a.follower.Await(ctx, i.Newest, catchUp)
		return a.follower.State(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		st := a.follower.State(ctx)
		known := slices.ContainsFunc(incident.Group(st.Pods, st.Owner, admission.Refusals(st)...), func(o incident.Incident) bool { return o.ID == i.ID && o.Missing > 0 })
		if known {
			return st
		}
		select {
		case <-patience.Done():
			return st
		case <-tick.C:
		}
	}
}

// found is the incident as a reading of the cluster knows it that is not older than what
// is told of it, nor than a time; nil when it does not wait there.
func (a *Analyst) found(ctx context.Context, told incident.Incident, read time.Time) (*incident.Incident, error) {
	if a.session != nil && time.Since(a.begun) < max(shared, sharedOf*a.took) && a.begun.After(read) {
		if i := a.waiting(told.ID); i != nil && !incident.Newer(told.Newest, i.Newest) {
			return i, nil
		}
	}
	a.end()
	begun := time.Now()
	st := a.caughtUp(ctx, told)
	snap, err := a.keeper.sync(ctx, st)
	if err != nil {
		return nil, err
	}
	opts := a.Opts
	opts.Snapshot = snap
	if a.session, err = rca.Begin(ctx, st, opts); err != nil {
		return nil, err
	}
	a.begun, a.took = begun, time.Since(begun)
	return a.waiting(told.ID), nil
}

func (a *Analyst) waiting(id string) *incident.Incident {
	for n := range a.session.Incidents {
		if i := &a.session.Incidents[n]; i.ID == id {
			return i
		}
	}
	return nil
}

// Explain reads the incident's pods again and diagnoses it; false when it no
// longer waits.
func (a *Analyst) Explain(ctx context.Context, told incident.Incident, read time.Time) (diagnosis.Diagnosis, bool, error) {
	began := time.Now()
	i, err := a.found(ctx, told, read)
	if err != nil || i == nil {
		return diagnosis.Diagnosis{}, false, err
	}
	d, err := a.session.ExplainOnce(ctx, *i)
	if err != nil {
		return diagnosis.Diagnosis{}, false, err
	}
	a.seconds.Observe(time.Since(began).Seconds())
	return d, true, nil
}
