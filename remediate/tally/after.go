package tally

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// After holds what came of a plan to what was said of it, and says what was not: as many pods
// wait as before, more than were announced, or pods stopped that the plan did not name. Pods
// that have ended by themselves are nobody's. Empty: it came as it was said.
func (t *Tally) After(ctx context.Context) string {
	st := &t.rem.Status
	if st.Before == nil || len(st.Journal) == 0 {
		return ""
	}
	stopped, err := t.unnamed(ctx)
	if err == nil {
		st.After = &v1alpha1.After{Stopped: stopped}
		st.After.Waiting, st.After.AllWaiting, err = t.waiting(ctx)
	}
	if err != nil {
		return "what else came of it cannot be told: " + err.Error()
	}
	var says []string
	if st.Pod != "" {
		if still := still(st); still != "" {
			says = append(says, still)
		}
	}
	if n := len(stopped); n > 0 {
		says = append(says, fmt.Sprintf("%d %s not named stopped: %s", n, either(n == 1, "pod that was", "pods that were"), listed(stopped)))
	}
	return strings.Join(says, ", and ")
}

// still says of a plan by which a pod runs that as many wait as before, or more than were
// announced; empty when neither is so.
func still(st *v1alpha1.RemediationStatus) string {
	was, is, all := st.Before.Waiting, st.After.Waiting, st.After.AllWaiting
	switch {
	case was > 0 && is == was:
		return fmt.Sprintf("as many wait as before (%d)", is)
	case was > 0 && is > was:
		return fmt.Sprintf("more wait than before (%d, it was %d)", is, was)
	case st.Before.Announced != nil && all > *st.Before.Announced:
		return fmt.Sprintf("%d %s, %d %s announced", all, either(all == 1, "waits", "wait"), *st.Before.Announced, either(*st.Before.Announced == 1, "was", "were"))
	}
	return ""
}

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// fewListed is how many pods a message names.
const fewListed = 5

func listed(pods []diagnosis.PodName) string {
	var names []string
	for _, p := range pods[:min(len(pods), fewListed)] {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if more := len(pods) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// waiting counts the pods that wait for a node: of the plan's workload, and of all workloads
// that have a part in it.
func (t *Tally) waiting(ctx context.Context) (own, all int, err error) {
	of := t.rem.Status.Before.Workloads
	var spaces []string
	for _, w := range of {
		if !slices.Contains(spaces, w.Namespace) {
			spaces = append(spaces, w.Namespace)
		}
	}
	lookup := t.owners(ctx)
	for _, ns := range spaces {
		pods, err := t.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, 0, fmt.Errorf("list pods of %s: %w", ns, err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if !Waits(p) {
				continue
			}
			switch w := incident.Topmost(p, lookup); {
			case w == t.rem.Spec.Workload:
				own, all = own+1, all+1
			case slices.Contains(of, w):
				all++
			}
		}
	}
	return own, all, nil
}

// unnamed are the pods that ran when the plan began, that it did not name, and that were
// stopped since.
func (t *Tally) unnamed(ctx context.Context) ([]diagnosis.PodName, error) {
	running := t.rem.Status.Before.Running
	now := map[types.UID]*corev1.Pod{}
	read := map[string]bool{}
	for _, w := range running {
		if read[w.Namespace] {
			continue
		}
		read[w.Namespace] = true
		pods, err := t.client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list pods of %s: %w", w.Namespace, err)
		}
		for i := range pods.Items {
			now[pods.Items[i].UID] = &pods.Items[i]
		}
	}
	var out []diagnosis.PodName
	for _, w := range running {
		stopped, err := t.wasStopped(ctx, w, now[w.UID])
		if err != nil {
			return nil, err
		}
		if stopped {
			out = append(out, diagnosis.PodName{Namespace: w.Namespace, Name: w.Name})
		}
	}
	return out, nil
}

// wasStopped says whether somebody has stopped a pod, as it is now. One that has ended is
// told by its phase; one that is gone by its owner: who has deleted that, or whose work is
// complete, has stopped it, and not the plan.
func (t *Tally) wasStopped(ctx context.Context, w v1alpha1.Watched, p *corev1.Pod) (bool, error) {
	if p != nil {
		disrupted := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
		})
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return disrupted || p.DeletionTimestamp != nil && !ended, nil
	}
	if w.OwnerKind == "" {
		return true, nil
	}
	o, err := t.owner(ctx, incident.Ref{Kind: w.OwnerKind, Namespace: w.Namespace, Name: w.Owner})
	switch {
	case errors.Is(err, owners.ErrUnread), apierrors.IsForbidden(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the owner of pod %s/%s: %w", w.Namespace, w.Name, err)
	}
	j, is := o.(*batchv1.Job)
	return !is || !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	}), nil
}
