package decisions

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type rejectOptions struct {
	sources.Source
	reason    string
	namespace string // of the executor
}

func rejectCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &rejectOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "reject INCIDENT#N|PLAN",
		Short: "Say no to a plan: nobody can approve it any more, and one under way is stopped and taken back",
		Long: `Say no to a plan, as yourself, by an Approval that says Reject: who may approve may
say no, also after a yes.

A plan that has not begun never will. One that is under way begins no further step: what
was begun is taken back, and the plan ends as Stopped, with your name and reason. What
was evicted until then stays evicted; its owners recreate it.`,
		Example: "  unpend reject gpu-7f3a01c9be#1 --reason 'wait for the nightly job'\n  unpend reject 24ac8de5d78c",
		Args:    console.Arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return o.reject(c.Context(), args[0], std) },
	}
	c.Flags().StringVar(&o.reason, "reason", "", "why, for the person who asked")
	ExecutorFlag(c, &o.namespace)
	return c
}

func (o *rejectOptions) reject(ctx context.Context, name string, std console.Stdio) error {
	d, err := o.Deps()
	if err != nil {
		return err
	}
	if strings.Contains(name, "#") { // else it is a plan's
		ref, err := sources.ParseFix(name)
		if err == nil {
			err = o.OfThisCluster(ctx, d, ref)
		}
		if err != nil {
			return err
		}
		name = fmt.Sprintf("%s#%d", ref.ID, ref.Fix)
	}
	plans, err := listPlans(ctx, d)
	if err != nil {
		return err
	}
	rem, err := planNamed(plans, name)
	if err != nil {
		return err
	}
	phase := rem.Status.Phase
	switch {
	case phase.Ended():
		return outcomeError(fmt.Errorf("%w: the plan is %s already: %s", plan.ErrRefused, phase, rem.Status.Message))
	case phase == v1alpha1.Undoing:
		fmt.Fprintf(std.Out, "plan %.12s is being taken back already: %s\n", rem.Name, terminal.Clean(rem.Status.Failure))
		return nil
	}
	me, err := AtDesk(ctx, d, o.namespace)
	if err != nil {
		return err
	}
	if _, err := me.No(ctx, rem, o.reason); err != nil {
		return outcomeError(err)
	}
	title := terminal.Clean(rem.Spec.Title)
	if !phase.Begun() {
		fmt.Fprintf(std.Out, "plan %.12s is rejected: %s\n", rem.Name, title)
		return nil
	}
	fmt.Fprintf(std.Out, "plan %.12s is told to stop: what was begun is taken back: %s\nNext: unpend remediations %.12s\n", rem.Name, title, rem.Name)
	leads, err := ExecutorLeads(ctx, d, o.namespace)
	if err == nil && !leads {
		fmt.Fprintf(std.Err, "No executor leads in namespace %s, or you may not read which one does: the plan is taken back once one leads.\n", o.namespace)
	}
	return err
}
