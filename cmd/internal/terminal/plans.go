package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Plans writes one line per plan.
func Plans(w io.Writer, plans []v1alpha1.Remediation, o Options) error {
	rows := [][]string{{"PLAN", "INCIDENT", "FIX", "PHASE", "STEP", "NODE", "BY", "AGE", "MESSAGE"}}
	if o.Wide {
		rows[0] = append(rows[0], "CAUSE", "WORKLOAD", "EVICTED", "ASKED BY", "CARRIER", "TITLE")
	}
	for _, p := range plans {
		row := []string{p.Name[:min(12, len(p.Name))], o.clean(p.Spec.Incident) + fmt.Sprintf("#%d", p.Spec.Fix), o.clean(string(p.Spec.Kind)),
			orDash(string(p.Status.Phase)), orDash(p.Status.Progress), orDash(o.clean(strings.Join(p.Spec.Nodes, ","))),
			orDash(o.clean(strings.Join(p.Status.ApprovedBy, ","))), orDash(o.age(p.CreationTimestamp.Time)), orDash(o.clean(p.Status.Message))}
		if o.Wide {
			of := p.Spec.Workload
			row = append(row, orDash(o.clean(string(p.Spec.Cause))), o.clean(fmt.Sprintf("%s/%s (%s)", of.Namespace, of.Name, of.Kind)),
				fmt.Sprint(p.Status.Evicted), orDash(o.clean(p.Spec.Requester)), o.clean(string(cmp.Or(p.Spec.Carrier, "executor"))), o.clean(p.Spec.Title))
		}
		rows = append(rows, row)
	}
	if _, err := io.WriteString(w, table{o}.align(rows)); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Journal shows one plan: what it is, who decided, and each step with the time it
// took and the error it ended with.
func Journal(w io.Writer, p *v1alpha1.Remediation, now time.Time, o Options) error {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s%s\n", key, o.clean(value))
		}
	}
	b.WriteString(o.bold(o.clean(p.Spec.Title)) + "\n")
	line("plan", p.Name)
	line("incident", fmt.Sprintf("%s  %s/%s (%s)", p.Spec.Incident, p.Spec.Workload.Namespace, p.Spec.Workload.Name, p.Spec.Workload.Kind))
	line("cause", string(p.Spec.Cause))
	line("asked by", p.Spec.Requester)
	line("approved", strings.Join(p.Status.ApprovedBy, ", "))
	line("phase", strings.TrimSpace(string(p.Status.Phase)+" "+p.Status.Progress))
	line("says", p.Status.Message)
	if told := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.Told); told != nil && told.Status != metav1.ConditionTrue {
		line("told", told.Message)
	}
	if !p.Status.Phase.Begun() && !p.Status.Phase.Ended() {
		line("expires", p.Spec.Expires.UTC().Format(time.RFC3339))
	}
	line("evicted", fmt.Sprint(p.Status.Evicted))
	line("audit", p.Status.AuditHead)
	rows := [][]string{{"STEP", "TOOK", "LEADER", ""}}
	for _, e := range p.Status.Journal {
		took, mark := "", e.Error
		switch {
		case e.Ended != nil:
			took = e.Ended.Sub(e.Began.Time).Round(10 * time.Millisecond).String()
		default:
			took, mark = now.Sub(e.Began.Time).Round(time.Second).String(), "under way, until "+e.Deadline.Format(time.TimeOnly)
		}
		text := e.Text
		if e.Step.TakesBack() {
			text = "undo: " + text
		}
		rows = append(rows, []string{o.clean(text), took, orDash(o.clean(e.Leader)), o.clean(mark)})
	}
	if len(p.Status.Journal) > 0 {
		b.WriteString("\n" + table{o}.align(rows))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}
