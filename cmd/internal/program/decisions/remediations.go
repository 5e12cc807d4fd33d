package decisions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type remediationsOptions struct {
	sources.Source
	output string
	watch  bool
}

func remediationsCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &remediationsOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:     "remediations [PLAN]",
		Short:   "List the plans that are decided on and carried out, or show one with its journal",
		Example: "  unpend remediations\n  unpend remediations 24ac8de5d78c\n  unpend remediations -o json",
		Args:    console.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if o.watch {
				return console.Again(c.Context(), std, func(ctx context.Context, std console.Stdio) error { return o.show(ctx, args, std) })
			}
			return o.show(c.Context(), args, std)
		},
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "json, yaml, name or wide")
	console.WatchFlag(c, &o.watch)
	return c
}

// remediationList is what -o json prints.
type remediationList struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Items      []v1alpha1.Remediation `json:"items"`
}

func (o *remediationsOptions) show(ctx context.Context, args []string, std console.Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml", "name", "wide"}, o.output) {
		return console.Usage("output %q is not known: use json, yaml, name or wide", o.output)
	}
	d, err := o.Deps()
	if err != nil {
		return err
	}
	plans, err := listPlans(ctx, d)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		one, err := planNamed(plans, args[0])
		if err != nil {
			return err
		}
		plans = []v1alpha1.Remediation{*one}
	}
	switch {
	case o.output == "name":
		for i := range plans {
			fmt.Fprintln(std.Out, planPrefix+plans[i].Name)
		}
		return nil
	case o.output == "json" || o.output == "yaml":
		return console.PrintList(std.Out, o.output, remediationList{v1alpha1.GroupVersion.String(), "RemediationList", plans})
	case len(args) == 1 && o.output == "":
		return terminal.Journal(std.Out, &plans[0], d.Now(), console.TerminalOptions(std.Out))
	case len(plans) == 0:
		fmt.Fprintln(std.Err, "No plan is recorded: 'unpend approve INCIDENT#N' records one.")
		return nil
	}
	style := console.TerminalOptions(std.Out)
	style.Now, style.Wide = d.Now(), o.output == "wide"
	return terminal.Plans(std.Out, plans, style)
}

// listPlans lists the plans, newest first.
func listPlans(ctx context.Context, d executor.Deps) ([]v1alpha1.Remediation, error) {
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this cluster has no Remediations: the chart of unpend is not installed")
	}
	if err != nil {
		return nil, sources.Unreachable(fmt.Errorf("list remediations: %w", err))
	}
	slices.SortStableFunc(plans, func(a, b v1alpha1.Remediation) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return plans, nil
}

// planPrefix comes before the name of a plan in -o name, as kubectl writes it.
const planPrefix = "remediation.unpend.dev/"

// planNamed finds a plan by the beginning of its hash, as -o name has it, or by INCIDENT#N:
// the one under way,
// else one that still can be, else the newest.
func planNamed(plans []v1alpha1.Remediation, name string) (*v1alpha1.Remediation, error) {
	var found, of []*v1alpha1.Remediation
	name = strings.TrimPrefix(name, planPrefix)
	for i := range plans {
		p := &plans[i]
		if fmt.Sprintf("%s#%d", p.Spec.Incident, p.Spec.Fix) == name {
			of = append(of, p)
		}
		if len(name) >= 4 && strings.HasPrefix(p.Name, name) {
			found = append(found, p)
		}
	}
	for _, stands := range []func(v1alpha1.Phase) bool{v1alpha1.Phase.Begun, func(p v1alpha1.Phase) bool { return !p.Ended() }} {
		if i := slices.IndexFunc(of, func(p *v1alpha1.Remediation) bool { return stands(p.Status.Phase) }); i >= 0 {
			return of[i], nil
		}
	}
	switch {
	case len(of) > 0:
		return of[0], nil
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return nil, fmt.Errorf("no plan %q is recorded; see 'unpend remediations'", name)
	}
	return nil, console.Usage("%q is the beginning of %d plans: write more of it", name, len(found))
}
