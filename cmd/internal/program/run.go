package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
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
	if c.Bus.Replicas > 1 && c.Bus.URL == "" {
		return usage("bus.replicas is %d: the embedded NATS is one server; name a cluster with --nats or bus.url", c.Bus.Replicas)
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
	garbage(garbageOfService)
	client, custom, err := clientsOf(gently(config))
	if err != nil {
		return err
	}
	s := &service{config: c, measure: measure, client: client, custom: custom, rest: config, now: time.Now, roles: o.roles, std: std, logger: slog.New(slog.NewJSONHandler(std.Err, nil)), registry: prometheus.NewRegistry()}
	if err := s.announce(ctx, o.mode); err != nil {
		return err
	}
	err = s.run(ctx)
	s.logger.InfoContext(ctx, "unpend ends", "because", cmp.Or(err, context.Cause(ctx)))
	return unreachable(err)
}

// service binds the rooms together, a line per topic.
type service struct {
	config   config
	measure  diagnosis.Measure
	client   kubernetes.Interface // for watching and diagnosing, held back together
	custom   dynamic.Interface
	rest     *rest.Config // of the executor, whom a storm of diagnoses must not hold up
	now      func() time.Time
	roles    []string
	std      Stdio
	logger   *slog.Logger
	registry *prometheus.Registry
	bus      *bus.Bus
	lead     *lead // nil: there is no other process beside this one
	ready    readiness
}

func (s *service) run(ctx context.Context) error {
	if slices.Contains(s.roles, "watch") || slices.Contains(s.roles, "diagnose") {
		b, err := s.openBus(ctx)
		if err != nil {
			return err
		}
		defer b.Close()
		s.bus, s.ready.check = b, b.Healthy
		if s.lead, err = s.newLead(); err != nil {
			return err
		}
		s.ready.leads = s.lead.standing
	}
	parts, ctx := newParts(ctx)
	if s.lead != nil {
		parts.begin("lead", func() error { return s.lead.run(ctx) })
	}
	parts.begin("http", func() error { return serveHTTP(ctx, s.config.Web.Metrics, s.registry, &s.ready) })
	if slices.Contains(s.roles, "remediate") {
		parts.begin("remediate", func() error { return s.carryOut(ctx) })
	}
	if slices.Contains(s.roles, "watch") {
		parts.begin("watch", func() error { return s.watch(ctx) })
	}
	if slices.Contains(s.roles, "diagnose") {
		parts.begin("diagnose", func() error { return s.diagnose(ctx) })
	}
	if err := parts.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (s *service) watch(ctx context.Context) error {
	var elected func(context.Context) (context.Context, error)
	if s.lead != nil {
		elected = s.lead.wait
	}
	w, err := watcher.New(watcher.Options{Client: s.client, Sweep: s.config.Watcher.Sweep.Duration, Debounce: s.config.Watcher.Debounce.Duration,
		Logger: s.logger, Registerer: s.registry, Publish: publishIncident(s.bus), Published: publishedIncidents(s.bus), Again: s.bus.Recovered(), Lead: elected})
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
