package program

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

func incidentsCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &whyOptions{Source: sources.Source{Kube: kube, All: true}, plans: true}
	c := &cobra.Command{
		Use:   "incidents",
		Short: "List everything that waits, in a table, and what is being done about it",
		Long: `List everything that waits, in a table, with where the plan of each stands: recorded,
approved, step k/n, done, parked and so on, and who decided. It needs no service; Remediations
that cannot be read, or that a dump does not hold, are said to be unread.`,
		Example: "  unpend incidents\n  unpend incidents -o json\n  unpend incidents -f testdata/scenarios/layout-mismatch",
		Args:    console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("all-namespaces") && kube.Namespace() != "" {
				o.All = false // -n says which
			}
			return o.whyOrWatch(c.Context(), nil, std)
		},
	}
	o.addFlags(c)
	o.choiceFlags(c)
	return c
}

// openIncident is a diagnosis and what is being done about it.
type openIncident struct {
	diagnosis.Diagnosis
	Remediation *decisions.PlanStanding `json:"remediation,omitempty"`
}

// printIncidents joins the findings with the plans for them.
func (o *whyOptions) printIncidents(ctx context.Context, std console.Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
	if o.output == "name" {
		return o.print(std, found, st)
	}
	items, column, unread, err := o.openIncidents(ctx, found, st)
	if err != nil {
		return err
	}
	if o.output == "json" || o.output == "yaml" {
		return console.PrintList(std.Out, o.output, incidentList(items))
	}
	if unread != "" {
		fmt.Fprintln(std.Err, terminal.Clean("unread: "+unread))
	}
	style := console.TerminalOptions(std.Out)
	style.Now, style.Wide = st.Now, o.output == "wide"
	return terminal.Incidents(std.Out, found, column, style)
}

func incidentList(items []openIncident) console.ListOf[openIncident] {
	return console.ListOf[openIncident]{APIVersion: diagnosis.APIVersion, Kind: diagnosis.ListKind, Items: items}
}

// openIncidents joins the findings with the plans for them, and has beside each what a table
// says of that; unread says why the plans could not be read.
func (o *whyOptions) openIncidents(ctx context.Context, found []diagnosis.Diagnosis, st *cluster.State) (items []openIncident, column []string, unread string, err error) {
	plans, unread, err := o.remediations(ctx, st)
	if err != nil {
		return nil, nil, "", err
	}
	of := decisions.Telling(plans)
	items = []openIncident{}
	for _, d := range found {
		i, says := openIncident{Diagnosis: d}, ""
		if unread != "" {
			i.Unread, says = append(slices.Clone(d.Unread), unread), "unread"
		}
		if rem := of[d.Incident]; rem != nil {
			i.Remediation = decisions.StandingOf(rem)
			says = i.Remediation.String()
		}
		items, column = append(items, i), append(column, says)
	}
	return items, column, unread, nil
}

// remediations are the plans of the cluster, or of the dump; unread says why they could
// not be read.
func (o *whyOptions) remediations(ctx context.Context, st *cluster.State) (plans []v1alpha1.Remediation, unread string, err error) {
	const open = ": whether a plan is recorded, or under way, is not known"
	if !st.Live {
		if st.Remediations == nil {
			return nil, "Remediation: the dump holds none" + open, nil
		}
		for _, text := range st.Remediations {
			var rem v1alpha1.Remediation
			if err := json.Unmarshal(text, &rem); err != nil {
				return nil, "", fmt.Errorf("read a Remediation of the dump: %w", err)
			}
			plans = append(plans, rem)
		}
		return plans, "", nil
	}
	d, err := o.Deps()
	if err != nil {
		return nil, "", err
	}
	plans, err = plan.Store{Dynamic: d.Dynamic}.List(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "Remediation: remediations.unpend.dev is not installed" + open, nil
	case apierrors.IsForbidden(err):
		return nil, "Remediation: the right to list remediations.unpend.dev is missing" + open, nil
	case err != nil:
		return nil, fmt.Sprintf("Remediation: %v%s", err, open), nil
	}
	return plans, "", nil
}
