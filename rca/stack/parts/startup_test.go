package parts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a startup probe has said since its container runs stands beside that it is not ready.
func TestWhatAStartupProbeSays(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		said    string
		at      time.Duration
		started bool
		words   string
	}{
		"of no devices":       {"Startup probe failed: No devices were found\n", time.Minute, false, "running and not ready, its startup probe says: No devices were found"},
		"before it ran":       {"Startup probe failed: No devices were found", -time.Minute, false, "running and not ready"},
		"and it has started":  {"Startup probe failed: No devices were found", time.Minute, true, "running and not ready"},
		"nothing":             {"Startup probe failed: ", time.Minute, false, "running and not ready"},
		"another probe of it": {"Readiness probe failed: No devices were found", time.Minute, false, "running and not ready"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "driver", Started: new(row.started), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}}}
		k := &Kit{unhealthy: map[string]*corev1.Event{}}
		k.hear(&corev1.Event{Reason: "Unhealthy", Message: row.said, LastTimestamp: metav1.NewTime(noon.Add(row.at)), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "g", Name: "p"}})
		if l := k.Look(p); l.Words != row.words {
			t.Errorf("%s: %q", name, l.Words)
		}
	}
	if all := NoDevices("running and not ready, its startup probe says: No devices were found", "n"); len(all) != 1 || !strings.Contains(all[0], "kubectl debug node/n ") || NoDevices("NVIDIA-SMI has failed", "n") != nil {
		t.Errorf("%q", all)
	}
}
