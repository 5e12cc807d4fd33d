package program

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/diagnosis"
)

type capacityOptions struct {
	source
	output string
}

func capacityCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &capacityOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:   "capacity RESOURCE=N [RESOURCE=N]...",
		Short: "Say whether N more of a GPU resource fit: now, after re-making idle instances, after moving somebody",
		Example: `  unpend capacity nvidia.com/mig-3g.20gb=3
  unpend capacity nvidia.com/mig-2g.10gb=2 -f testdata/scenarios/all-1g -o json`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args, std)
		},
	}
	o.flags(c)
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml")
	return c
}

func (o *capacityOptions) run(ctx context.Context, args []string, std Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return usage("output %q is not known: use json or yaml", o.output)
	}
	asks, err := capacityAsks(args)
	if err != nil {
		return err
	}
	st, err := o.state(ctx, "", std)
	if err != nil {
		return err
	}
	items, err := capacity.Capacity(ctx, st, asks)
	if err != nil {
		return err
	}
	if o.output != "" {
		return printList(std.Out, o.output, diagnosis.CapacityList{APIVersion: diagnosis.APIVersion, Kind: diagnosis.CapacityKind, Items: items})
	}
	return terminal.Capacity(std.Out, items, terminalOptions(std.Out))
}

// maxAsked keeps a slip of the finger from being planned for.
const maxAsked = 1_000_000

// capacityAsks reads RESOURCE=N; every mistake is a usage error.
func capacityAsks(args []string) ([]capacity.Ask, error) {
	var out []capacity.Ask
	for _, arg := range args {
		name, count, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usage("%q is not RESOURCE=N, such as nvidia.com/mig-3g.20gb=3", arg)
		}
		if err := capacity.CheckCapacityResource(name); err != nil {
			return nil, usage("%v", err)
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > maxAsked {
			return nil, usage("%q asks for %q: a whole number from 1 to %d was expected", arg, count, maxAsked)
		}
		if slices.ContainsFunc(out, func(a capacity.Ask) bool { return a.Resource == name }) {
			return nil, usage("%s is asked for twice", name)
		}
		out = append(out, capacity.Ask{Resource: name, Count: n})
	}
	return out, nil
}
