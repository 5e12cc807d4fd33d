// Package decisions is what people say of plans, and see of them: `unpend approve`, `reject`,
// `release`, `remediations`, `status` and `wait`. It asks, records what was said, and shows what
// is carried out; what a plan does to the cluster stands in remediate/act.
package decisions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// usualNamespace is where the chart installs the service.
const usualNamespace = "unpend"

// ExecutorFlag says where the service runs.
func ExecutorFlag(c *cobra.Command, namespace *string) {
	c.Flags().StringVar(namespace, "executor-namespace", usualNamespace, "where the service runs")
}

// ExecutorLeads says whether an executor is at work: its lease is held. Who may not read
// that is refused, for past an executor go its guard-rails; unless none can be there.
func ExecutorLeads(ctx context.Context, d executor.Deps, namespace string) (bool, error) {
	l, err := executor.Leader(ctx, d, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		if !executor.Installed(d) {
			return false, nil
		}
		return false, fmt.Errorf("%w: whether an executor carries plans out in namespace %s cannot be told: %w; ask for the ClusterRole of approvers, or say with --executor-namespace where it runs", plan.ErrRefused, namespace, err)
	case err != nil:
		return false, fmt.Errorf("look for the executor: %w", err)
	}
	return l != nil, nil
}

// byExecutor records the plan and the approval, and follows the executor's journal.
func byExecutor(d executor.Deps, found plan.Found, namespace string, w io.Writer) Carrier {
	return func(ctx context.Context, report func(journal.Progress)) (executor.Outcome, error) {
		out := executor.Outcome{Incident: found.Diagnosis.Incident, Fix: found.Fix, Started: d.Now()}
		me, err := AtDesk(ctx, d, namespace)
		if err != nil {
			return out, err
		}
		answer, err := me.Carry(ctx, found)
		if err != nil {
			return out, err
		}
		rem := answer.Plan
		if answer.Approval == nil {
			if _, err := fmt.Fprintf(w, "You have asked for this plan, and two others have to approve it (%s): each by 'unpend approve %s#%d'.\n", answer.Why, rem.Spec.Incident, rem.Spec.Fix); err != nil {
				return out, err
			}
		}
		rem, err = follow(ctx, d, rem.Name, report)
		if rem != nil {
			out.End(rem, d.Now())
		}
		return out, err
	}
}

// AtDesk is who has the kubeconfig, as the desk knows them.
func AtDesk(ctx context.Context, d executor.Deps, namespace string) (desk.Visitor, error) {
	return desk.Desk{Deps: d, Namespace: namespace}.Self(ctx, d.Client, d.Dynamic, "kubectl")
}

// follow reports a plan's journal until the plan has ended, and its end.
func follow(ctx context.Context, d executor.Deps, name string, report func(journal.Progress)) (*v1alpha1.Remediation, error) {
	store, steps := plan.Store{Dynamic: d.Dynamic}, NewSteps(report)
	for {
		rem, err := store.Get(ctx, name)
		if err == nil {
			steps.Read(rem)
			if rem.Status.Phase.Ended() {
				return rem, EndOf(rem)
			}
			err = untilChanged(ctx, d, rem)
		}
		if ctx.Err() != nil {
			return rem, fmt.Errorf("no longer watching; the executor goes on (unpend remediations shows where it stands, unpend reject %.12s stops it and takes it back)", name)
		}
		if err != nil {
			return nil, fmt.Errorf("follow plan %.12s: %w", name, err)
		}
	}
}

// untilChanged waits for the next change of the plan.
func untilChanged(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation) error {
	w, err := d.Dynamic.Resource(v1alpha1.Remediations).Watch(ctx, metav1.ListOptions{ResourceVersion: rem.ResourceVersion,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", rem.Name).String()})
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ResultChan(): // closed: it is read again
		return nil
	}
}

// steps tells of a plan's steps as they come, each piece of news once.
type steps struct {
	report func(journal.Progress)
	told   map[journal.Progress]bool
}

// NewSteps has report told of them.
func NewSteps(report func(journal.Progress)) *steps {
	return &steps{report: report, told: map[journal.Progress]bool{}}
}

func (j *steps) tell(s journal.Progress) {
	if !j.told[s] {
		j.told[s] = true
		j.report(s)
	}
}

// Read tells what is new in a plan's journal, and of where a plan stands that has not
// begun.
func (j *steps) Read(rem *v1alpha1.Remediation) {
	var at, of int
	if _, err := fmt.Sscanf(rem.Status.Progress, "%d/%d", &at, &of); err != nil {
		of = 1
	}
	for i, e := range rem.Status.Journal {
		text := e.Text
		if e.Step.TakesBack() {
			text = "undo: " + text
		}
		j.tell(journal.Progress{N: i + 1, Of: max(of, i+1), Text: text, Done: e.Ended != nil && e.Error == "", Within: e.Deadline.Sub(e.Began.Time)})
	}
	if len(rem.Status.Journal) == 0 && !rem.Status.Phase.Ended() {
		text := "the executor takes it up"
		if rem.Status.Message != "" {
			text = strings.ToLower(string(rem.Status.Phase)) + ": " + rem.Status.Message
		}
		text += "; the plan expires at " + rem.Spec.Expires.UTC().Format(time.RFC3339)
		j.tell(journal.Progress{N: 1, Of: of, Text: text})
	}
}

// EndOf is how a plan that has ended is told, with the exit codes of approve.
func EndOf(rem *v1alpha1.Remediation) error {
	switch message := rem.Status.Message; rem.Status.Phase {
	case v1alpha1.Succeeded:
		return nil
	case v1alpha1.Stale:
		return fmt.Errorf("%w: %s", plan.ErrStale, strings.TrimPrefix(message, plan.ErrStale.Error()+": "))
	case v1alpha1.Refused, v1alpha1.Rejected, v1alpha1.Expired, v1alpha1.Superseded:
		return fmt.Errorf("%w: %s", plan.ErrRefused, strings.TrimPrefix(message, plan.ErrRefused.Error()+": "))
	default:
		return errors.New(strings.ToLower(string(rem.Status.Phase)) + ": " + message)
	}
}

// ExecutorAt is the flag that names where the service runs, unless that is the usual place.
func ExecutorAt(namespace string) string {
	if namespace == "" || namespace == usualNamespace {
		return ""
	}
	return "--executor-namespace " + console.Quoted(namespace)
}
