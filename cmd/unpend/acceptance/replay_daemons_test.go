package acceptance

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
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

// daemons makes the scenario's DaemonSets, and waits until their pods run.
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
		want := 0
		for _, p := range r.st.Pods {
			if by := metav1.GetControllerOfNoCopy(p); r.daemonsPod(p) && by.Name == from.Name && p.Namespace == from.Namespace {
				want++
			}
		}
		sets := r.c.Client().AppsV1().DaemonSets(from.Namespace)
		_, err := sets.Create(t.Context(), strip(from.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		controlplane.Eventually(t, 30*time.Second, "daemonset "+from.Name+" runs", func() (bool, string) {
			got, err := sets.Get(t.Context(), from.Name, metav1.GetOptions{})
			return err == nil && int(got.Status.NumberReady) == want, fmt.Sprintf("%d of %d, %v", got.Status.NumberReady, want, err)
		})
	}
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
