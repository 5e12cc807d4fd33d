package program

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/service"
	"github.com/unpend/unpend/rca/idle"
)

type runOptions struct {
	source
	config string
	roles  []string
	mode   string
	nats   string
}

func runCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &runOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:   "run",
		Short: "The service: watch, diagnose, and carry approved fixes out",
		Example: `  unpend run --config unpend.yaml
  unpend run --mode approve
  unpend run --mode approve --roles remediate
  unpend run --nats nats://nats:4222 --roles notify`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.serve(c.Context(), std) },
	}
	c.Flags().StringVar(&o.config, "config", "", "YAML file, a key per room")
	c.Flags().StringSliceVar(&o.roles, "roles", nil, "what this process does: "+strings.Join(service.Roles, ", ")+"; all that the mode allows, without it")
	c.Flags().StringVar(&o.mode, "mode", "observe", "observe: nothing in the cluster is changed; approve: what somebody has approved is")
	c.Flags().StringVar(&o.nats, "nats", "", "URL of a NATS cluster; embedded without it")
	return c
}

func (o *runOptions) check(c service.Config) error {
	for _, r := range o.roles {
		if !slices.Contains(service.Roles, r) {
			return usage("role %q is not known: use %s", r, strings.Join(service.Roles, ", "))
		}
	}
	if o.mode != "observe" && o.mode != "approve" {
		return usage("mode %q is not known: use observe or approve", o.mode)
	}
	if len(o.roles) == 0 {
		o.roles = service.Roles
		if o.mode == "observe" {
			o.roles = []string{"watch", "diagnose", "notify"}
		}
	}
	carriesOut := slices.Contains(o.roles, "remediate")
	if carriesOut && o.mode == "observe" {
		return usage("role remediate changes the cluster: it needs --mode approve")
	}
	whole := slices.Contains(o.roles, "watch") && slices.Contains(o.roles, "diagnose")
	if alone := !whole && slices.ContainsFunc(o.roles, func(r string) bool { return r != "remediate" }); alone && c.Bus.URL == "" {
		return usage("fewer roles need --nats: the embedded NATS is in the process that watches and diagnoses")
	}
	if c.Bus.Replicas > 1 && c.Bus.URL == "" {
		return usage("bus.replicas is %d: the embedded NATS is one server; name a cluster with --nats or bus.url", c.Bus.Replicas)
	}
	return nil
}

func (o *runOptions) serve(ctx context.Context, std Stdio) error {
	c, err := service.ReadConfig(o.config)
	if err != nil {
		return err
	}
	if o.nats != "" {
		c.Bus.URL = o.nats
	}
	if len(o.kube.ownerKinds) > 0 {
		c.RCA.OwnerKinds = o.kube.ownerKinds
	}
	o.kube.ownerKinds = c.RCA.OwnerKinds // who asks the page's agents means the same incidents
	if err := o.check(c); err != nil {
		return err
	}
	measure, err := idle.NewMeasure(c.GPUWork())
	if err != nil {
		return &codedError{exitUsage, err}
	}
	config, err := o.rest()
	if err != nil {
		return err
	}
	garbage(garbageOfService)
	b := readBuild()
	s, err := service.New(ctx, service.Options{Agents: o.agentsHandlers(config, c.Namespace(), b.Version), Config: c, Measure: measure, REST: config, Roles: o.roles, Mode: o.mode,
		Version: b.Version, Commit: b.Revision, Out: std.Out, Log: std.Err})
	if err != nil {
		return err
	}
	return unreachable(s.Run(ctx))
}
