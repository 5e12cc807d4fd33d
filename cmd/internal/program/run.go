package program

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/service"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/idle"
)

// garbageOfService is how much garbage there may be beside what is alive, in percent. Go's own
// 100 saves a tenth of the time, and takes 100 MiB more at 1,000 nodes with 10,000 pods.
const garbageOfService = 50

type runOptions struct {
	sources.Source
	config string
	roles  []string
	mode   string
	nats   string
}

func runCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &runOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "run",
		Short: "The service: watch, diagnose, and carry approved fixes out",
		Example: `  unpend run --config unpend.yaml
  unpend run --mode approve
  unpend run --mode approve --roles remediate
  unpend run --nats nats://nats:4222 --roles notify`,
		Args: console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.serve(c.Context(), std) },
	}
	c.Flags().StringVar(&o.config, "config", "", "YAML file, a key per room")
	c.Flags().StringSliceVar(&o.roles, "roles", nil, "what this process does: "+strings.Join(service.Roles, ", ")+"; all that the mode allows, without it")
	c.Flags().StringVar(&o.mode, "mode", "observe", "observe: nothing in the cluster is changed; approve: what somebody has approved is")
	c.Flags().StringVar(&o.nats, "nats", "", "URL of a NATS cluster; embedded without it")
	return c
}

func (o *runOptions) check(c settings.Config) error {
	for _, r := range o.roles {
		if !slices.Contains(service.Roles, r) {
			return console.Usage("role %q is not known: use %s", r, strings.Join(service.Roles, ", "))
		}
	}
	if o.mode != "observe" && o.mode != "approve" {
		return console.Usage("mode %q is not known: use observe or approve", o.mode)
	}
	if len(o.roles) == 0 {
		o.roles = service.Roles
		if o.mode == "observe" {
			o.roles = []string{"watch", "diagnose", "notify"}
		}
	}
	carriesOut := slices.Contains(o.roles, "remediate")
	if carriesOut && o.mode == "observe" {
		return console.Usage("role remediate changes the cluster: it needs --mode approve")
	}
	whole := slices.Contains(o.roles, "watch") && slices.Contains(o.roles, "diagnose")
	if alone := !whole && slices.ContainsFunc(o.roles, func(r string) bool { return r != "remediate" }); alone && c.Bus.URL == "" {
		return console.Usage("fewer roles need --nats: the embedded NATS is in the process that watches and diagnoses")
	}
	if c.Bus.Replicas > 1 && c.Bus.URL == "" {
		return console.Usage("bus.replicas is %d: the embedded NATS is one server; name a cluster with --nats or bus.url", c.Bus.Replicas)
	}
	return nil
}

func (o *runOptions) serve(ctx context.Context, std console.Stdio) error {
	c, err := settings.ReadConfig(o.config)
	if err != nil {
		return err
	}
	if o.nats != "" {
		c.Bus.URL = o.nats
	}
	if len(o.Kube.OwnerKinds) > 0 {
		c.RCA.OwnerKinds = o.Kube.OwnerKinds
	}
	o.Kube.OwnerKinds = c.RCA.OwnerKinds // who asks the page's agents means the same incidents
	if err := o.check(c); err != nil {
		return err
	}
	measure, err := idle.NewMeasure(c.GPUWork())
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	config, err := o.REST()
	if err != nil {
		return err
	}
	sources.Garbage(garbageOfService)
	b := readBuild()
	s, err := service.New(ctx, service.Options{Agents: o.agentsHandlers(config, c.Namespace(), b.Version), Config: c, Measure: measure, REST: config, Roles: o.roles, Mode: o.mode,
		Version: b.Version, Commit: b.Revision, Out: std.Out, Log: std.Err})
	if err != nil {
		return err
	}
	return sources.Unreachable(s.Run(ctx))
}
