package decisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type approveOptions struct {
	sources.Source
	sources.GPUWork
	plan      string
	output    string
	namespace string // of the executor
	dryRun    bool
	yes       bool
}

func approveCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &approveOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "approve INCIDENT#N",
		Short: "Show fix N of an incident with its plan, ask, and apply it",
		Example: `  unpend approve gpu-7f3a01c9be#1
  unpend approve gpu-7f3a01c9be#1 --dry-run
  unpend approve gpu-7f3a01c9be#1 --plan HEX`,
		Args: console.Arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.approve(c.Context(), args[0], std) },
	}
	o.GPUWork.Flags(c)
	c.Flags().StringVar(&o.plan, "plan", "", "apply only if this is still the plan (64 hex); where nobody is there to be asked that is a yes")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "send every write as a server-side dry run")
	c.Flags().StringVarP(&o.output, "output", "o", "", "json: one object a line, as it happens")
	ExecutorFlag(c, &o.namespace)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "ask nothing")
	return c
}

func (o *approveOptions) approve(ctx context.Context, arg string, std console.Stdio) error {
	if o.output != "" && o.output != "json" {
		return console.Usage("output %q is not known: use json", o.output)
	}
	ref, err := sources.ParseFix(arg)
	if err != nil {
		return err
	}
	measure, err := o.Measure()
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	d, err := o.Deps()
	if err != nil {
		return err
	}
	d.Measure, d.DryRun = measure, o.dryRun
	if err := o.OfThisCluster(ctx, d, ref); err != nil {
		return err
	}
	incident, number := ref.ID, ref.Fix
	if err := o.underWay(ctx, d, incident, std); err != nil {
		return outcomeError(err)
	}
	rails := &railsSeen{}
	d.Guard = rails.watch(executor.GuardOf(d, o.namespace, 0))
	found, err := executor.Find(ctx, d, incident, number, o.plan)
	if err != nil {
		return outcomeError(o.refine(ctx, d, found, incident, sources.Unreachable(err)))
	}
	if is := found.Fix.ID; is != number {
		return outcomeError(fmt.Errorf("%w: that is not the plan of fix %d, but of fix %d: approve %s#%d", plan.ErrStale, number, is, incident, is))
	}
	leads, err := ExecutorLeads(ctx, d, o.namespace)
	if err != nil {
		return outcomeError(err)
	}
	switch {
	case leads:
		d.Locks = o.namespace // the steps are those of the executor
	case !o.dryRun:
		if d, err = executor.Unled(ctx, d, o.namespace); err != nil { // before anybody is asked
			return outcomeError(err)
		}
	}
	screen, err := o.consent(ctx, d, found, leads, rails)
	if err != nil {
		return outcomeError(err)
	}
	style := console.TerminalOptions(std.Err)
	style.Now = found.State.Now
	if err := terminal.Consents(std.Err, screen, style); err != nil {
		return err
	}
	if err := o.ask(number, std); err != nil {
		return err
	}
	carry, err := o.carrier(ctx, d, found, leads, std)
	if err != nil {
		return outcomeError(err)
	}
	if o.output == "json" {
		return outcomeError(Events{std.Out, d.Now()}.Apply(ctx, d, found.Fix.Plan, carry))
	}
	return Apply(ctx, d, carry, std)
}

// underWay is an error while a plan for the incident is carried out: what is found
// meanwhile is found of a cluster that this plan is changing. One that a terminal has left
// is taken back first.
func (o *approveOptions) underWay(ctx context.Context, d executor.Deps, incident string, std console.Stdio) error {
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if err != nil {
		return nil // not installed, or not to be read: the fix is proved on what can be
	}
	for i := range plans {
		rem, outcome := &plans[i], plan.ErrRefused
		if rem.Spec.Incident != incident || !rem.Status.Phase.Begun() {
			continue
		}
		if rem.Spec.Carrier == v1alpha1.Terminal && !o.dryRun {
			gone, err := watched(ctx, d, rem, std)
			if err != nil {
				return err
			}
			if gone {
				if err := o.takeBack(ctx, d, rem, std); err != nil {
					return err
				}
				continue
			}
		}
		if o.plan != "" {
			outcome = plan.ErrStale
		}
		return fmt.Errorf("%w: plan %.12s for this incident is under way already (%s): follow it by 'unpend remediations %.12s -w'%s", outcome, rem.Name, StandingOf(rem).State, rem.Name, o.wayOut(ctx, d, rem))
	}
	return nil
}

// wayOut names the way out of a plan that nobody carries on.
func (o *approveOptions) wayOut(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation) string {
	if rem.Spec.Carrier == v1alpha1.Terminal {
		return ""
	}
	if leads, err := ExecutorLeads(ctx, d, o.namespace); err != nil || leads {
		return ""
	}
	return fmt.Sprintf("; no executor leads in namespace %s, 'unpend status' names what it has left", o.namespace)
}

// takeBack asks, and takes back what a terminal has left of a plan.
func (o *approveOptions) takeBack(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation, std console.Stdio) error {
	fmt.Fprintf(std.Err, "Plan %.12s for this incident was left in step %s: the terminal of %s that carried it out has ended.\n", rem.Name, rem.Status.Progress, terminal.Clean(rem.Spec.Requester))
	if err := console.Agreed(o.consented(std), "Take it back first? [y/N] ", std); err != nil {
		return err
	}
	return takeBack(ctx, d, rem, std)
}

// Carrier carries a plan out: from here, or by the executor that the cluster has.
type Carrier func(ctx context.Context, report func(journal.Progress)) (executor.Outcome, error)

// FromHere carries a plan out in this process.
func FromHere(d executor.Deps, incident string, number int, name string) Carrier {
	return func(ctx context.Context, report func(journal.Progress)) (executor.Outcome, error) {
		return executor.Apply(ctx, d, incident, number, name, report)
	}
}

// carrier chooses the executor where there is one: it has the guard-rails, and a
// journal that outlives this process.
func (o *approveOptions) carrier(ctx context.Context, d executor.Deps, found plan.Found, leads bool, std console.Stdio) (Carrier, error) {
	switch {
	case o.dryRun:
		fmt.Fprintln(std.Err, "Dry run: each write is sent to be checked, with your own rights, and is not kept; nothing is waited for.")
		if leads {
			fmt.Fprintf(std.Err, "The executor in namespace %s would write the nodes itself: that you may not does not keep you from approving.\n", o.namespace)
		}
	case leads:
		fmt.Fprintf(std.Err, "Ctrl-C: nothing is lost, the executor goes on ('unpend reject %.12s' stops it and takes it back).\n", found.Fix.Plan)
		return byExecutor(d, found, o.namespace, std.Err), nil
	default:
		var err error
		if d, err = onRecord(ctx, d, std); err != nil {
			return nil, err
		}
		fmt.Fprintf(std.Err, "No executor leads in namespace %s: the fix is applied from here, with your own rights.\n", o.namespace)
		fmt.Fprintln(std.Err, "Ctrl-C: no further step is begun, and what was begun is taken back before this ends.")
		if nodes := found.Fix.Cost.Nodes; d.Requester == "" && len(nodes) > 0 {
			fmt.Fprintf(std.Err, "Should this process be killed, 'unpend release %s' gives the node back.\n", nodes[0])
		}
	}
	d.Shown = found.Fix.Actions
	return FromHere(d, found.Diagnosis.Incident, found.Fix.ID, found.Fix.Plan), nil
}

// Apply carries the fix out and shows its steps.
func Apply(ctx context.Context, d executor.Deps, carry Carrier, std console.Stdio) error {
	steps := terminal.NewSteps(std.Err, console.IsTerminal(std.Err), d.Now)
	out, err := carry(ctx, func(s journal.Progress) { steps.Update(s.N, s.Of, s.Text, s.Within, s.Done) })
	if cerr := steps.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return outcomeError(err)
	}
	if d.DryRun {
		fmt.Fprintln(std.Out, "Dry run: the API server would accept every write; nothing was changed.")
		return nil
	}
	stopped := fmt.Sprintf("%d evicted", out.Evicted)
	if out.Restarted > 0 {
		stopped += fmt.Sprintf(", %d restarted", out.Restarted)
	}
	fmt.Fprintf(std.Out, "%s (%s, %s)\n", terminal.Clean(out.Says), out.Ended.Sub(out.Started).Round(time.Second), stopped)
	return nil
}

// outcomeError gives the outcomes of remediate their exit codes.
func outcomeError(err error) error {
	switch {
	case errors.Is(err, plan.ErrStale):
		return console.Exit(console.ExitStale, err)
	case errors.Is(err, plan.ErrRefused), apierrors.IsForbidden(err):
		return console.Exit(console.ExitRefused, err)
	}
	return err
}

// consented says that a yes was given before: by a flag, or by a script that names the plan.
func (o *approveOptions) consented(std console.Stdio) bool {
	return o.yes || o.dryRun || o.plan != "" && !console.IsTerminal(std.In)
}

// ask wants a yes from a person; a script has to name the plan.
func (o *approveOptions) ask(number int, std console.Stdio) error {
	if !o.yes && o.plan == "" && !o.dryRun && !console.IsTerminal(std.In) {
		return console.Exit(console.ExitRefused, errors.New("nobody is there to be asked: give --plan HEX, or --yes"))
	}
	return console.Agreed(o.consented(std), fmt.Sprintf("Approve fix %d? [y/N] ", number), std)
}

// refine tells of a plan that was not found because its incident is gone, or never was.
func (o *approveOptions) refine(ctx context.Context, d executor.Deps, found plan.Found, id string, err error) error {
	if found.State == nil || found.Diagnosis.Incident != "" || !errors.Is(err, plan.ErrStale) {
		return err
	}
	return Absent(ctx, &o.Source, found.State, &d, id)
}
