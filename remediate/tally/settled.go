package tally

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
)

// settled says whether the controller of the workload has made all the pods that it wants
// and has taken back those that it does not: between two of its writes nobody may wait, and
// a moment later somebody does. A workload that is gone, or of a kind that nobody here
// reads, is settled.
func (t *Tally) settled(ctx context.Context) (bool, error) {
	w := t.rem.Spec.Workload
	switch w.Kind {
	case "Deployment", "ReplicaSet", "StatefulSet", "Job":
	default:
		return true, nil
	}
	o, err := plan.Object(ctx, t.client, diagnosis.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		n, s := ptr.Deref(o.Spec.Replicas, 1), o.Status
		return o.Spec.Paused || s.ObservedGeneration >= o.Generation && s.UpdatedReplicas == n && s.Replicas == n, nil
	case *appsv1.ReplicaSet:
		return o.Status.ObservedGeneration >= o.Generation && o.Status.Replicas == ptr.Deref(o.Spec.Replicas, 1), nil
	case *appsv1.StatefulSet:
		return setSettled(o), nil
	case *batchv1.Job:
		return jobSettled(o), nil
	}
	return true, nil
}

// setSettled: with the strategy OnDelete nobody but a person goes on, and what stands below
// the partition stays as it is. One that is ordered makes no pod before the one in front of
// it is ready, so one that waits holds up the rest.
func setSettled(t *appsv1.StatefulSet) bool {
	n, s := ptr.Deref(t.Spec.Replicas, 1), t.Status
	if s.ObservedGeneration < t.Generation || s.Replicas != n {
		return false
	}
	u := t.Spec.UpdateStrategy
	if u.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return true
	}
	if u.RollingUpdate != nil && u.RollingUpdate.Partition != nil {
		n = max(0, n-*u.RollingUpdate.Partition)
	}
	return s.UpdateRevision == s.CurrentRevision || s.UpdatedReplicas >= n
}

// jobSettled: as many pods are there as run at a time, or as are still wanted.
func jobSettled(t *batchv1.Job) bool {
	if ptr.Deref(t.Spec.Suspend, false) || t.Status.CompletionTime != nil {
		return true
	}
	wanted := ptr.Deref(t.Spec.Parallelism, 1)
	if t.Spec.Completions != nil {
		wanted = min(wanted, *t.Spec.Completions-t.Status.Succeeded)
	}
	return t.Status.Active >= wanted
}
