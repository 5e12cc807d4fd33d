package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
)

type runOptions struct {
	source
	config string
	roles  []string
	mode   string
	nats   string
}

// roles are what one process can do of the whole; remediate only in mode approve.
var roles = []string{"watch", "diagnose", "remediate"}

func runCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &runOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:   "run",
		Short: "The service: watch, diagnose, and carry approved fixes out",
		Example: `  unpend run --config unpend.yaml
  unpend run --mode approve
  unpend run --mode approve --roles remediate
  unpend run --nats nats://nats:4222 --roles watch`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.serve(c.Context(), std) },
	}
	c.Flags().StringVar(&o.config, "config", "", "YAML file, a key per room")
	c.Flags().StringSliceVar(&o.roles, "roles", nil, "what this process does: "+strings.Join(roles, ", ")+"; all that the mode allows, without it")
	c.Flags().StringVar(&o.mode, "mode", "observe", "observe: nothing in the cluster is changed; approve: what somebody has approved is")
	c.Flags().StringVar(&o.nats, "nats", "", "URL of a NATS cluster; embedded without it")
	return c
}

func (o *runOptions) check(c config) error {
	for _, r := range o.roles {
		if !slices.Contains(roles, r) {
			return usage("role %q is not known: use %s", r, strings.Join(roles, ", "))
		}
	}
	if o.mode != "observe" && o.mode != "approve" {
		return usage("mode %q is not known: use observe or approve", o.mode)
	}
	if len(o.roles) == 0 {
		o.roles = roles
		if o.mode == "observe" {
			o.roles = []string{"watch", "diagnose"}
		}
	}
	carriesOut := slices.Contains(o.roles, "remediate")
	if carriesOut && o.mode == "observe" {
		return usage("role remediate changes the cluster: it needs --mode approve")
	}
	if alone := slices.Contains(o.roles, "watch") != slices.Contains(o.roles, "diagnose"); alone && c.Bus.URL == "" {
		return usage("fewer roles need --nats: the embedded NATS has no listener")
	}
	return nil
}

func (o *runOptions) serve(ctx context.Context, std Stdio) error {
	c, err := readConfig(o.config)
	if err != nil {
		return err
	}
	if o.nats != "" {
		c.Bus.URL = o.nats
	}
	if err := o.check(c); err != nil {
		return err
	}
	measure, err := c.gpuWork().measure()
	if err != nil {
		return &codedError{exitUsage, err}
	}
	config, err := o.rest()
	if err != nil {
		return err
	}
	config.Wrap(hurried)
	client, custom, err := clientsOf(config)
	if err != nil {
		return err
	}
	s := &service{config: c, measure: measure, client: client, custom: custom, rest: config, now: time.Now, roles: o.roles, std: std, logger: slog.New(slog.NewJSONHandler(std.Err, nil)), registry: prometheus.NewRegistry()}
	return unreachable(s.run(ctx))
}

// service binds the rooms together, a line per topic.
type service struct {
	config   config
	measure  diagnosis.Measure
	client   kubernetes.Interface
	custom   dynamic.Interface
	rest     *rest.Config
	now      func() time.Time
	roles    []string
	std      Stdio
	logger   *slog.Logger
	registry *prometheus.Registry
	bus      *bus.Bus
	ready    readiness
}

func (s *service) run(ctx context.Context) error {
	if slices.Contains(s.roles, "watch") || slices.Contains(s.roles, "diagnose") {
		b, err := bus.Open(ctx, bus.Options{URL: s.config.Bus.URL, StoreDir: s.config.Bus.StoreDir, MaxBytes: s.config.Bus.MaxBytes})
		if err != nil {
			return err
		}
		defer b.Close()
		s.bus, s.ready.check = b, b.Healthy
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return serveHTTP(ctx, s.config.Web.Metrics, s.registry, &s.ready) })
	if slices.Contains(s.roles, "remediate") {
		parts.Go(func() error { return s.carryOut(ctx) })
	}
	if slices.Contains(s.roles, "watch") {
		parts.Go(func() error { return s.watch(ctx) })
	}
	if slices.Contains(s.roles, "diagnose") {
		parts.Go(func() error { return s.diagnose(ctx) })
	}
	if err := parts.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (s *service) watch(ctx context.Context) error {
	w, err := watcher.New(watcher.Options{Client: s.client, Sweep: s.config.Watcher.Sweep.Duration, Debounce: s.config.Watcher.Debounce.Duration,
		Logger: s.logger, Registerer: s.registry, Publish: publishIncident(s.bus), Published: publishedIncidents(s.bus)})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// publishIncident binds the watcher's type to its topic.
func publishIncident(b *bus.Bus) func(context.Context, incident.Incident) error {
	return func(ctx context.Context, i incident.Incident) error {
		id, body, err := i.Message()
		if err != nil {
			return err
		}
		return b.PublishNewer(ctx, bus.Incidents, i.ID, id, body, i.Older)
	}
}

// publishedIncidents reads what is known of each incident. A message that nobody
// can read tells nothing: the next one replaces it.
func publishedIncidents(b *bus.Bus) func(context.Context) ([]incident.Incident, error) {
	return func(ctx context.Context) ([]incident.Incident, error) {
		var out []incident.Incident
		err := b.Kept(ctx, bus.Incidents, func(body []byte) error {
			var i incident.Incident
			if json.Unmarshal(body, &i) == nil {
				out = append(out, i)
			}
			return nil
		})
		return out, err
	}
}

func (s *service) diagnose(ctx context.Context) error {
	f, err := cluster.Follow(ctx, s.client, s.custom, time.Now)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := newAnalyst(ctx, f, s.config.Knowledge.Folder, s.logger, s.registry)
	if err != nil {
		return err
	}
	defer a.close()
	a.opts.Measure, a.opts.Outcomes = s.measure, plan.Store{Dynamic: s.custom}.Outcomes
	a.opts.Guard = guardOf(executor.Deps{Client: s.client, Dynamic: s.custom, Now: time.Now}, s.config.Remediate.namespace(), railsFor)
	gauges := capacity.NewGauges(time.Now)
	if err := s.registry.Register(gauges); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := errors.Join(f.OnGeometry(gauges.Set, gauges.Delete), f.OnNode(gauges.SetNode, gauges.DeleteNode)); err != nil {
		return err
	}
	s.ready.set()
	return s.bus.Consume(ctx, bus.Incidents, "diagnose", func(ctx context.Context, _ string, body []byte) error {
		var i incident.Incident
		if err := json.Unmarshal(body, &i); err != nil {
			return fmt.Errorf("read an incident: %w", err)
		}
		if i.Resolved {
			return nil
		}
		gauges.Asked(i)
		d, ok, err := a.explain(ctx, i)
		if err != nil || !ok {
			return err
		}
		return s.publish(ctx, i, d)
	})
}

// publish hands a diagnosis on, and prints it.
func (s *service) publish(ctx context.Context, i incident.Incident, d diagnosis.Diagnosis) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write a diagnosis: %w", err)
	}
	id, _, err := i.Message()
	if err != nil {
		return err
	}
	if err := s.bus.Publish(ctx, bus.Diagnoses, d.Incident, "diagnosis-"+id, body); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.std.Out, string(body))
	return err
}

// catchUp is how long a diagnosis waits for what its incident tells of: the
// watcher and the copy of the cluster hear of it one by one.
const catchUp = 2 * time.Second

// analyst explains incidents over a copy of the cluster that is kept up to date.
type analyst struct {
	follower *cluster.Follower
	keeper   *keeper
	opts     rca.Options
	index    *knowledge.Index
	seconds  prometheus.Histogram
	causes   *prometheus.CounterVec
}

func newAnalyst(ctx context.Context, f *cluster.Follower, folder string, logger *slog.Logger, registry prometheus.Registerer) (*analyst, error) {
	a := &analyst{follower: f, keeper: &keeper{}, opts: rca.Options{Logger: logger},
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "unpend_diagnosis_duration_seconds", Help: "How long one diagnosis took.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}),
		causes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_incidents_total", Help: "Diagnoses, by root cause."}, []string{"cause"})}
	for _, c := range []prometheus.Collector{a.seconds, a.causes} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	if folder != "" {
		index, err := knowledge.OpenFolder(ctx, folder)
		if err != nil {
			return nil, fmt.Errorf("read knowledge: %w", err)
		}
		a.index = index
		for _, s := range index.Skipped() {
			logger.WarnContext(ctx, "a document of the knowledge folder is left out", "why", s)
		}
		a.opts.Search = func(ctx context.Context, words []string) ([]knowledge.Hit, error) { return index.Search(ctx, words, 3) }
	}
	return a, nil
}

func (a *analyst) close() {
	a.keeper.close()
	if a.index != nil {
		a.index.Close() //nolint:errcheck // the process ends; the folder is temporary
	}
}

// caughtUp is the state once it knows what the incident tells of: its pods or, where
// it lacks some, who refused them. What never comes is diagnosed without.
func (a *analyst) caughtUp(ctx context.Context, i incident.Incident) *cluster.State {
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

// explain reads the incident's pods again and diagnoses it; false when it no
// longer waits.
func (a *analyst) explain(ctx context.Context, i incident.Incident) (diagnosis.Diagnosis, bool, error) {
	began := time.Now()
	st := a.caughtUp(ctx, i)
	snap, err := a.keeper.sync(ctx, st)
	if err != nil {
		return diagnosis.Diagnosis{}, false, err
	}
	opts := a.opts
	opts.Snapshot = snap
	opts.Only = func(o incident.Incident) bool { return o.ID == i.ID }
	found, err := rca.Diagnose(ctx, st, opts)
	if err != nil || len(found) == 0 {
		return diagnosis.Diagnosis{}, false, err
	}
	a.seconds.Observe(time.Since(began).Seconds())
	a.causes.WithLabelValues(string(found[0].Causes[0].ID)).Inc()
	return found[0], true, nil
}
