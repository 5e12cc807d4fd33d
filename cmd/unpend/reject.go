package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type rejectOptions struct {
	source
	reason string
}

func rejectCommand(kube *genericclioptions.ConfigFlags, std stdio) *cobra.Command {
	o := &rejectOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:     "reject INCIDENT#N|PLAN",
		Short:   "Say no to a recorded plan: nobody can approve it any more",
		Example: "  unpend reject gpu-7f3a01c9be#1 --reason 'wait for the nightly job'\n  unpend reject 24ac8de5d78c",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return o.reject(c.Context(), args[0], std) },
	}
	c.Flags().StringVar(&o.reason, "reason", "", "why, for whoever asked")
	return c
}

func (o *rejectOptions) reject(ctx context.Context, name string, std stdio) error {
	d, err := o.deps()
	if err != nil {
		return err
	}
	plans, err := listPlans(ctx, d)
	if err != nil {
		return err
	}
	rem, err := planNamed(plans, name)
	if err != nil {
		return err
	}
	if rem.Status.Phase.Ended() || rem.Status.Phase.Begun() {
		return outcomeError(fmt.Errorf("%w: the plan is %s already: %s", remediate.ErrRefused, rem.Status.Phase, rem.Status.Message))
	}
	if err := decision(ctx, d, rem, v1alpha1.Reject, o.reason); err != nil {
		return outcomeError(err)
	}
	fmt.Fprintf(std.out, "plan %.12s is rejected: %s\n", rem.Name, terminal.Clean(rem.Spec.Title))
	return nil
}
