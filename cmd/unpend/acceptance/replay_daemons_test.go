package acceptance

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// daemonsPod says whether the scenario has the DaemonSet of a pod: its controller makes
// the pod.
func (r *replay) daemonsPod(p *corev1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil || by.Kind != "DaemonSet" {
		return false
	}
	_, there := r.st.Owner(by.Kind, p.Namespace, by.Name)
	return there
}

// daemons makes the scenario's DaemonSets, and waits until as many of their pods run, and as many wait.
func (r *replay) daemons(t *testing.T) {
	t.Helper()
	// Those of a scenario before are deleted, and stand until their pods are.
	controlplane.Eventually(t, time.Minute, "the daemonsets of a scenario before are gone", func() (bool, string) {
		left, err := r.c.Client().AppsV1().DaemonSets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for i := range left.Items {
			if ds := &left.Items[i]; ds.DeletionTimestamp == nil {
				err = errors.Join(err, r.c.Client().AppsV1().DaemonSets(ds.Namespace).Delete(t.Context(), ds.Name, metav1.DeleteOptions{}))
			}
		}
		return len(left.Items) == 0, fmt.Sprintf("%d are left, %v", len(left.Items), err)
	})
	for _, from := range r.st.DaemonSets {
		run, wait := 0, 0
		for _, p := range r.st.Pods {
			if by := metav1.GetControllerOfNoCopy(p); r.daemonsPod(p) && by.Name == from.Name && p.Namespace == from.Namespace {
				if p.Spec.NodeName != "" {
					run++
				} else {
					wait++
				}
			}
		}
		sets := r.c.Client().AppsV1().DaemonSets(from.Namespace)
		_, err := sets.Create(t.Context(), strip(from.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		controlplane.Eventually(t, 30*time.Second, "daemonset "+from.Name+" runs", func() (bool, string) {
			got, err := sets.Get(t.Context(), from.Name, metav1.GetOptions{})
			must(t, err)
			waiting, err := r.unschedulable(t, from)
			return err == nil && int(got.Status.NumberReady) == run && waiting == wait, fmt.Sprintf("%d of %d, %d of %d wait, %v", got.Status.NumberReady, run, waiting, wait, err)
		})
	}
}

// unschedulable is of how many of a DaemonSet's pods the scheduler has said that they have no node.
func (r *replay) unschedulable(t *testing.T, of *appsv1.DaemonSet) (int, error) {
	t.Helper()
	pods, err := r.c.Client().CoreV1().Pods(of.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range pods.Items {
		by := metav1.GetControllerOfNoCopy(&pods.Items[i])
		reason, _, waits := incident.Waiting(&pods.Items[i])
		if waits && reason == corev1.PodReasonUnschedulable && by != nil && by.Kind == "DaemonSet" && by.Name == of.Name {
			n++
		}
	}
	return n, nil
}

// sets makes the StatefulSets all of whose pods wait: the real controller makes the pods, each under its name.
func (r *replay) sets(t *testing.T) {
	t.Helper()
	for _, from := range r.st.StatefulSets {
		var wait []*corev1.Pod
		for _, p := range r.st.Pods {
			if r.setOf(p) == from {
				wait = append(wait, p)
			}
		}
		if len(wait) == 0 {
			continue
		}
		_, err := r.c.Client().AppsV1().StatefulSets(from.Namespace).Create(t.Context(), strip(from.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		for _, p := range wait {
			r.said(t, p, p.Name)
		}
	}
}

// setOf is the StatefulSet that makes a waiting pod, none of whose pods has a node; nil for any other pod.
func (r *replay) setOf(p *corev1.Pod) *appsv1.StatefulSet {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil || by.Kind != "StatefulSet" || slices.ContainsFunc(r.st.Pods, func(o *corev1.Pod) bool {
		of := metav1.GetControllerOfNoCopy(o)
		return o.Spec.NodeName != "" && o.Namespace == p.Namespace && of != nil && of.Kind == by.Kind && of.Name == by.Name
	}) {
		return nil
	}
	for _, s := range r.st.StatefulSets {
		if s.Namespace == p.Namespace && s.Name == by.Name {
			return s
		}
	}
	return nil
}

// announced is how many evictions a fix speaks of: its victims, and the device plugin's
// pod, which is no victim.
func announced(f diagnosis.Fix) int {
	n := len(f.Cost.Evictions)
	if slices.Contains(f.Kinds, diagnosis.RestartDevicePlugin) {
		n++
	}
	return n
}
