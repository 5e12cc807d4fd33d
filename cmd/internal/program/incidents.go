package program

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

func incidentsCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &whyOptions{source: source{kube: kube, all: true}, plans: true}
	c := &cobra.Command{
		Use:   "incidents",
		Short: "List everything that waits, in a table, and what is being done about it",
		Long: `List everything that waits, in a table, with where the plan of each stands: recorded,
approved, step k/n, done, parked and so on, and who decided. It needs no service; Remediations
that cannot be read, or that a dump does not hold, are said to be unread.`,
		Example: "  unpend incidents\n  unpend incidents -o json\n  unpend incidents -f testdata/scenarios/layout-mismatch",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("all-namespaces") && kube.namespace() != "" {
				o.all = false // -n says which
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
	Remediation *planStanding `json:"remediation,omitempty"`
}

// planStanding is where a plan stands, and by whose word.
type planStanding struct {
	Plan     string         `json:"plan"`
	Fix      int            `json:"fix"`
	Phase    v1alpha1.Phase `json:"phase"`
	State    string         `json:"state"` // for a person
	Progress string         `json:"progress,omitempty"`
	By       []string       `json:"by"` // who approved it, or who asked for it
	Message  string         `json:"message,omitempty"`
	// AuditHead is the hash of the last line of the audit trail about it.
	AuditHead string `json:"auditHead,omitempty"`
}

func standingOf(rem *v1alpha1.Remediation) *planStanding {
	s := &planStanding{Plan: rem.Name, Fix: rem.Spec.Fix, Phase: cmp.Or(rem.Status.Phase, v1alpha1.Pending), Progress: rem.Status.Progress, By: rem.Status.ApprovedBy, Message: rem.Status.Message, AuditHead: rem.Status.AuditHead}
	if len(s.By) == 0 {
		s.By = []string{rem.Spec.Requester}
	}
	switch s.State = strings.ToLower(string(s.Phase)); s.Phase {
	case v1alpha1.Pending:
		s.State = "recorded"
	case v1alpha1.Queued:
		s.State = "approved"
	case v1alpha1.Running:
		s.State = "step " + cmp.Or(s.Progress, "0")
	case v1alpha1.Undoing:
		s.State = "being taken back"
	case v1alpha1.Succeeded:
		s.State = "done"
	}
	return s
}

func (s *planStanding) String() string {
	return fmt.Sprintf("#%d %s (%s)", s.Fix, s.State, strings.Join(s.By, ", "))
}

// printIncidents joins the findings with the plans for them.
func (o *whyOptions) printIncidents(ctx context.Context, std Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
	if o.output == "name" {
		return o.print(std, found, st)
	}
	items, column, unread, err := o.openIncidents(ctx, found, st)
	if err != nil {
		return err
	}
	if o.output == "json" || o.output == "yaml" {
		return printList(std.Out, o.output, incidentList(items))
	}
	if unread != "" {
		fmt.Fprintln(std.Err, terminal.Clean("unread: "+unread))
	}
	style := terminalOptions(std.Out)
	style.Now, style.Wide = st.Now, o.output == "wide"
	return terminal.Incidents(std.Out, found, column, style)
}

// listOf is a list as `-o json` prints it.
type listOf[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

func incidentList(items []openIncident) listOf[openIncident] {
	return listOf[openIncident]{diagnosis.APIVersion, diagnosis.ListKind, items}
}

// openIncidents joins the findings with the plans for them, and has beside each what a table
// says of that; unread says why the plans could not be read.
func (o *whyOptions) openIncidents(ctx context.Context, found []diagnosis.Diagnosis, st *cluster.State) (items []openIncident, column []string, unread string, err error) {
	plans, unread, err := o.remediations(ctx, st)
	if err != nil {
		return nil, nil, "", err
	}
	of := telling(plans)
	items = []openIncident{}
	for _, d := range found {
		i, says := openIncident{Diagnosis: d}, ""
		if unread != "" {
			i.Unread, says = append(slices.Clone(d.Unread), unread), "unread"
		}
		if rem := of[d.Incident]; rem != nil {
			i.Remediation = standingOf(rem)
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
	d, err := o.deps()
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

// telling are, by incident, the plans that tell most of it: one under way before one that
// waits, that before one that is parked; else the newest.
func telling(plans []v1alpha1.Remediation) map[string]*v1alpha1.Remediation {
	rank := func(p v1alpha1.Phase) int {
		switch {
		case p.Begun():
			return 0
		case !p.Ended():
			return 1
		case p == v1alpha1.Parked:
			return 2
		}
		return 3
	}
	out := map[string]*v1alpha1.Remediation{}
	for i := range plans {
		p := &plans[i]
		best := out[p.Spec.Incident]
		if best == nil || cmp.Or(cmp.Compare(rank(p.Status.Phase), rank(best.Status.Phase)), best.CreationTimestamp.Compare(p.CreationTimestamp.Time), cmp.Compare(p.Name, best.Name)) < 0 {
			out[p.Spec.Incident] = p
		}
	}
	return out
}
