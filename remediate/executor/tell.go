package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

const (
	// tellEvery is how often the leader looks for plans that have ended and nobody has been
	// told of, and counts plans: who has to come is told long before a minute has passed.
	tellEvery = 5 * time.Second
	// tellWithin bounds one telling: a bus that does not answer is away.
	tellWithin = 5 * time.Second
)

// The reasons of the condition Told.
const (
	reasonPublished = "Published"
	reasonBusAway   = "BusAway"
)

// watchEnds tells of the plans that have ended, and keeps the figures. It runs beside
// what carries plans out: a bus that is away holds nothing up.
func (x *Executor) watchEnds(ctx context.Context, cached client.Reader) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		if err := x.lookBack(ctx, cached); err != nil && ctx.Err() == nil {
			x.Logger.WarnContext(ctx, "the ends of plans could not be told of", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (x *Executor) lookBack(ctx context.Context, cached client.Reader) error {
	var nodes corev1.NodeList
	plans, err := x.store.List(ctx)
	if err := errors.Join(err, cached.List(ctx, &nodes)); err != nil {
		return fmt.Errorf("list nodes and plans: %w", err)
	}
	x.metrics.stand(plans, nodes.Items)
	return x.tellAll(ctx, plans)
}

// tellAll tells of each plan that has ended and that nobody was told of. Once the bus is
// away it is not asked again for the others: they only say so.
func (x *Executor) tellAll(ctx context.Context, plans []v1alpha1.Remediation) error {
	if x.Publish == nil {
		return nil
	}
	var away, failed error
	for i := range plans {
		rem := &plans[i]
		if !rem.Status.Phase.Ended() || rem.Newer() || meta.IsStatusConditionTrue(rem.Status.Conditions, v1alpha1.Told) {
			continue
		}
		if away == nil {
			away = x.publish(ctx, NoticeOf(rem))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed = errors.Join(failed, x.told(ctx, rem, away))
	}
	return failed
}

func (x *Executor) publish(ctx context.Context, n notice.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	return x.Publish(ctx, n)
}

// told writes into the plan whether somebody was told, if that is news. What is not
// written is told again: the bus drops what it has.
func (x *Executor) told(ctx context.Context, rem *v1alpha1.Remediation, away error) error {
	c := metav1.Condition{Type: v1alpha1.Told, Status: metav1.ConditionTrue, Reason: reasonPublished, Message: "published on the bus", ObservedGeneration: rem.Generation}
	if away != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonBusAway, "not told yet, it is tried again: "+away.Error()
	}
	if !meta.SetStatusCondition(&rem.Status.Conditions, c) {
		return nil
	}
	if err := x.store.Save(ctx, rem); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil // it has changed, or is gone: the next look sees
}

// NoticeOf is what there is to tell of a plan now.
func NoticeOf(rem *v1alpha1.Remediation) notice.Notice {
	n := notice.Notice{What: outcome(cmp.Or(rem.Status.Phase, v1alpha1.Pending)), Incident: rem.Spec.Incident, Plan: rem.Name, Workload: rem.Spec.Workload, Title: rem.Spec.Title,
		Reason: rem.Status.Message, Since: rem.CreationTimestamp.UTC(), Approvers: rem.Status.ApprovedBy, AuditHead: rem.Status.AuditHead}
	if rem.Status.Began != nil {
		n.Began = rem.Status.Began.UTC()
		n.Since = n.Began
	}
	if steps := rem.Status.Journal; rem.Status.Phase.Begun() && len(steps) > 0 {
		step := steps[len(steps)-1]
		n.Since, n.Step, n.Progress = step.Began.UTC(), step.Text, rem.Status.Progress
	}
	if rem.Status.Ended != nil {
		n.Since = rem.Status.Ended.UTC()
	}
	if len(rem.Spec.Nodes) > 0 {
		n.Node = rem.Spec.Nodes[0]
	}
	actions := plan.InOrder(rem.Spec.Actions)
	if i, ok := rem.Status.Parking.Action(); ok && i < len(actions) {
		n.Node = actions[i].Target.Name
	}
	return n
}

// outcome is how a phase is called in notices and metrics.
func outcome(p v1alpha1.Phase) string { return strings.ToLower(string(p)) }
