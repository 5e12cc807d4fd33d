package acceptance

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stuck says whether a pod has its node in the scenario and does not run there: its image or its
// devices do not come, or it ends again and again.
func stuck(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodPending || slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Waiting != nil })
}

// doesNotRun has the simulated kubelet leave a pod's status as it is written.
func doesNotRun(p *corev1.Pod) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, "unpend.dev/does-not-run", "")
}

// now is a pod's status with its moments as long ago as in the scenario.
func (r *replay) now(t *testing.T, status corev1.PodStatus) (out corev1.PodStatus) {
	t.Helper()
	text, err := json.Marshal(status)
	must(t, err)
	must(t, json.Unmarshal([]byte(moved(string(text), r.shift)), &out))
	return out
}

// account makes the service account that a pod names: the API server takes no pod without.
func (r *replay) account(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if p.Spec.ServiceAccountName == "" {
		return
	}
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}}
	if _, err := r.c.Client().CoreV1().ServiceAccounts(p.Namespace).Create(t.Context(), a, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
}
