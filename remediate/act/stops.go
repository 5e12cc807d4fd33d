package act

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// asShown holds the pods that an action stops to those that were shown, and to what budgets
// allow: consent was given to these, and to no others. plan.ErrStale: others run, or some no
// longer do. plan.ErrRefused: a budget protects one, or it cannot be told.
func asShown(st *cluster.State, a diagnosis.Action) error {
	is := view.Stops(st, a)
	for _, p := range is {
		if !slices.ContainsFunc(a.Stops, func(s diagnosis.Target) bool { return s.UID == string(p.UID) }) {
			return fmt.Errorf("%w: pod %s/%s of %s runs and would stop, which was not shown", plan.ErrStale, p.Namespace, p.Name, nameOf(a.Target))
		}
	}
	for _, s := range a.Stops {
		if !slices.ContainsFunc(is, func(p *corev1.Pod) bool { return string(p.UID) == s.UID }) {
			return fmt.Errorf("%w: pod %s/%s of %s does not run any more, it was shown among those that stop", plan.ErrStale, s.Namespace, s.Name, nameOf(a.Target))
		}
	}
	if len(is) == 0 {
		return nil
	}
	if why := st.Unread["PodDisruptionBudget"]; why != "" {
		return fmt.Errorf("%w: whether a PodDisruptionBudget protects the pods of %s cannot be told: %s", plan.ErrRefused, nameOf(a.Target), why)
	}
	if says := view.SparedBy(st, []diagnosis.Action{a}); says != "" {
		return fmt.Errorf("%w: %s", plan.ErrRefused, says)
	}
	return nil
}

// stopsAsShown is asShown of the target as it was read just now, for its next write.
func (a action) stopsAsShown(ctx context.Context, o metav1.Object) error {
	rolls := slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, a.Target.Kind)
	if a.Verb != diagnosis.VerbRecreate && !rolls && len(a.Stops) == 0 {
		return nil // it stops nobody
	}
	st, err := a.around(ctx, o)
	if err != nil {
		return err
	}
	return asShown(st, a.Action)
}

// restarted has the journal say that the pods stop: those of a write that was made.
func (a action) restarted() {
	for _, s := range a.Stops {
		pod := v1alpha1.Pod{Name: s.Name, UID: types.UID(s.UID)}
		if status := &a.rem.Status; !a.DryRun && !slices.Contains(status.Restarted, pod) {
			status.Restarted = append(status.Restarted, pod)
		}
	}
}

// around is the target with the pods and budgets of its namespace.
func (a action) around(ctx context.Context, o metav1.Object) (*cluster.State, error) {
	all, ns := metav1.ListOptions{}, a.Target.Namespace
	pods, err := a.Client.CoreV1().Pods(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", ns, err)
	}
	budgets, err := a.Client.PolicyV1().PodDisruptionBudgets(ns).List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list the budgets of %s: %w", ns, err)
	}
	st := &cluster.State{Now: a.Now(), Live: true}
	for i := range pods.Items {
		st.Pods = append(st.Pods, &pods.Items[i])
	}
	for i := range budgets.Items {
		st.PDBs = append(st.PDBs, &budgets.Items[i])
	}
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		st.StatefulSets = append(st.StatefulSets, o)
	case *appsv1.DaemonSet:
		st.DaemonSets = append(st.DaemonSets, o)
	case *appsv1.Deployment:
		st.Deployments = append(st.Deployments, o)
		sets, err := a.Client.AppsV1().ReplicaSets(ns).List(ctx, all)
		if err != nil {
			return nil, fmt.Errorf("list the replicasets of %s: %w", ns, err)
		}
		for i := range sets.Items {
			st.ReplicaSets = append(st.ReplicaSets, &sets.Items[i])
		}
	}
	return st, nil
}
