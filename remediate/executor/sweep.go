package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// sweepAgain is how soon a plan that is to be forgotten is looked at again whose entry is
// still in use, or must not be taken out now.
const sweepAgain = time.Hour

// swept takes the entries out that a plan which is about to be forgotten has written into
// a team's layouts, where nobody needs them any more, and says whether none is left: as
// long as one is, the plan is what tells whose it is.
func (x *Executor) swept(ctx context.Context, rem *v1alpha1.Remediation) (bool, error) {
	for _, e := range act.Entries(x.acting(), rem) {
		if done, err := x.sweep(ctx, rem, e); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// sweep takes out one entry, if it is there as we wrote it, to the byte.
func (x *Executor) sweep(ctx context.Context, rem *v1alpha1.Remediation, e *act.Entry) (done bool, err error) {
	if err := x.leading(ctx); err != nil {
		return false, err
	}
	is, err := e.Written(ctx)
	if errors.Is(err, act.ErrNoLayouts) {
		x.Logger.WarnContext(ctx, "an entry is left where it is", "entry", e.Name(), "error", err)
		return false, nil
	}
	if err != nil || !is {
		return err == nil, err
	}
	if needed, err := x.needed(ctx, e.Name()); err != nil || needed {
		return false, err
	}
	if err := x.rails().halted(ctx); errors.Is(err, plan.ErrHalted) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	of, now := e.ConfigMap(), metav1.NewMicroTime(x.Now())
	line := &v1alpha1.Entry{Step: v1alpha1.StepID("sweep/" + e.Name()), Text: fmt.Sprintf("take entry %s out of configmap %s/%s: no node asks for it any more", e.Name(), of.Namespace, of.Name), Began: now, Deadline: now}
	if err := x.Observe.Tell(ctx, rem, line, audit.Begun); err != nil {
		return false, err
	}
	missing, err := e.TakeOut(ctx)
	line.Ended = &now
	if why := errors.Join(err, errors.New(missing)); err != nil || missing != "" {
		line.Error = why.Error()
		x.Observe.Remark(ctx, x.Logger, rem, line, audit.Failed)
		return false, why
	}
	x.Observe.Remark(ctx, x.Logger, rem, line, audit.Done)
	return true, nil
}

// needed says whether a node asks for an entry, or would on its way back, or a plan that
// has not ended is about it.
func (x *Executor) needed(ctx context.Context, config string) (bool, error) {
	nodes, err := x.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		mark, err := diagnosis.OperationOn(n)
		if err != nil || n.Labels[nodeprobe.LabelMIGConfig] == config || mark != nil && mark.PriorMIGConfig == config {
			return true, nil // what cannot be read may name it
		}
	}
	plans, err := x.store.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list plans: %w", err)
	}
	return slices.ContainsFunc(plans, func(r v1alpha1.Remediation) bool {
		return !r.Status.Phase.Ended() && slices.ContainsFunc(r.Spec.Actions, func(a diagnosis.Action) bool {
			return a.Relayout != nil && (a.Relayout.Config == config || a.Relayout.First == config)
		})
	}), nil
}
