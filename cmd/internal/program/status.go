package program

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/executor"
)

type statusOptions struct {
	source
	output    string
	namespace string
}

func statusCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &statusOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show who carries fixes out, the guard-rails with their figures, and what is parked",
		Example: "  unpend status\n  unpend status -o json",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return o.show(c.Context(), std) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml")
	executorFlag(c, &o.namespace)
	return c
}

func (o *statusOptions) show(ctx context.Context, std Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return usage("output %q is not known: use json or yaml", o.output)
	}
	d, err := o.deps()
	if err != nil {
		return err
	}
	s, err := executor.Stand(ctx, d, o.namespace)
	if err != nil {
		return unreachable(err)
	}
	if o.output != "" {
		return printList(std.Out, o.output, s)
	}
	return terminal.Status(std.Out, statusLines(s, d.Now()), terminalOptions(std.Out))
}
