package claims

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod runs since the last of its containers started, and not at all while one does not; who lays the driver out is told by
// the names that the GPU Operator gives.
func TestWhoStartedLast(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	runs := func(since time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(since))}}}
	}
	for name, tc := range map[string]struct {
		containers []corev1.ContainerStatus
		want       time.Time
	}{
		"the last of two":  {[]corev1.ContainerStatus{runs(time.Hour), runs(0)}, at.Add(time.Hour)},
		"one does not run": {[]corev1.ContainerStatus{runs(time.Hour), {}}, time.Time{}},
		"no container":     {nil, time.Time{}},
	} {
		if got := runsSince(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: tc.containers}}); !got.Equal(tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for app, want := range map[string]bool{"nvidia-container-toolkit-daemonset": true, "nvidia-driver-daemonset-9.6.20260318-0": true, "nvidia-operator-validator": false, "": false} {
		if ofDriver(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}}) != want {
			t.Errorf("%s: not %v", app, want)
		}
	}
}
