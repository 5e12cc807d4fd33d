package acceptance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/prometheus"
)

// recorded starts a Prometheus on the samples of a scenario (its metrics.txt), their
// times moved, and returns the flags that name it; none for a scenario without.
func recorded(t *testing.T, scenario string, shift time.Duration) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(scenarios, scenario, "metrics.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	text, err := prometheus.Shift(string(data), shift)
	must(t, err)
	return []string{"--prometheus", prometheus.Record(t, text)}
}

// measured is recorded, live: the scenario's moment is now, and its pods have run for
// as long as in the scenario.
func (r *replay) measured(t *testing.T, scenario string) {
	t.Helper()
	shift := time.Since(r.st.Now)
	if r.flags = recorded(t, scenario, shift); r.flags == nil {
		return
	}
	for _, p := range r.st.Pods {
		if p.Spec.NodeName == "" || p.Status.StartTime == nil {
			continue
		}
		pods := r.c.Client().CoreV1().Pods(p.Namespace)
		live, err := pods.Get(t.Context(), p.Name, metav1.GetOptions{})
		must(t, err)
		began := metav1.NewTime(p.Status.StartTime.Add(shift))
		live.Status.StartTime = &began
		for i := range live.Status.ContainerStatuses {
			live.Status.ContainerStatuses[i].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
		}
		_, err = pods.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
		must(t, err)
	}
}
