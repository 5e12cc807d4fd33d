package parts

import (
	"slices"
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

// Where the toolkit finds no driver that is loaded, the driver's own pod and the machine are asked.
func TestWhereADriverIsLookedFor(t *testing.T) {
	driver := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "d"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ctr"}}}}
	const words = "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
	for name, k := range map[string]struct {
		words  string
		driver *corev1.Pod
		want   []string // what the commands begin with
	}{
		"its own":       {words, driver, []string{"kubectl -n gpu-operator exec d -c ctr -- nvidia-smi -L", "kubectl debug node/n "}},
		"the machine's": {words, nil, []string{"kubectl debug node/n "}},
		"other words":   {"nvidia-container-cli: mount error", driver, nil},
	} {
		got := NotLoaded(k.words, "n", k.driver)
		if !slices.EqualFunc(got, k.want, strings.HasPrefix) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
