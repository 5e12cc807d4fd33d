package stack

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// readyFor is a pod that has been Ready that long.
func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-d))}}
	}
}

// A device plugin that was there before its driver, or its toolkit, has looked too early: another pod of it looks again.
func TestAPluginThatLookedTooEarly(t *testing.T) {
	for name, k := range map[string]struct {
		plugin, driver, toolkit time.Duration
		want                    string
	}{
		"before the driver":  {3 * time.Hour, 2 * time.Hour, 4 * time.Hour, "it began before the driver was ready"},
		"before the toolkit": {3 * time.Hour, 4 * time.Hour, 2 * time.Hour, "it began before the container toolkit was ready"},
		"after both":         {2 * time.Hour, 4 * time.Hour, 3 * time.Hour, ""},
	} {
		l := newLab()
		l.gpuNode("n")
		l.pod(parts.Plugin, "n", readyFor(k.plugin))
		l.pod(parts.Driver, "n", readyFor(k.driver))
		l.pod(parts.Toolkit, "n", readyFor(k.toolkit))
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != diagnosis.DevicePluginDown || !strings.HasPrefix(f.Says, "has GPUs and offers none, though its device plugin runs") || strings.Contains(f.Says, "it began before") != (k.want != "") || !strings.Contains(f.Says, k.want) {
			t.Fatalf("%s: %+v", name, f)
		}
		if first := f.Mends[0]; k.want != "" && (first.Kind != diagnosis.RestartDevicePlugin || first.Unproven != "" || first.Until == "") {
			t.Errorf("%s: %+v", name, f.Mends)
		}
	}
}

// A runtime that is NVIDIA's, and finds no device, has no driver that serves the machine's GPU: it is not to be configured.
func TestARuntimeThatFindsNoDevice(t *testing.T) {
	for words, want := range map[string]diagnosis.CauseID{"nvidia-container-cli: initialization error: no device": diagnosis.DriverNotReady, "no luck": diagnosis.RuntimeNotConfigured,
		"nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9": diagnosis.RuntimeNotConfigured, "nvidia-container-cli: container error: cgroup subsystem devices not found": diagnosis.RuntimeNotConfigured} {
		l := newLab()
		l.chartNode(map[string]string{"k8s.amazonaws.com/accelerator": "nvidia-tesla-k80"})
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
		l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		l.pod(parts.Plugin, "n", crashes(words))
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != want || f.Certainty != diagnosis.Likely {
			t.Fatalf("%s: %+v", words, f)
		}
		if byCDI := strings.Contains(strings.Join(f.Mends[0].Commands, "\n"), "nvidia-container-runtime.mode=cdi"); byCDI != runtimeItself.MatchString(words) {
			t.Errorf("%s: %q", words, f.Mends[0].Commands)
		}
	}
}

// A kernel that a driver is precompiled for is another node's whose driver runs: not one's own, nor one of a driver
// that fails.
func TestAKernelThatADriverIsMadeFor(t *testing.T) {
	for name, k := range map[string]struct {
		kernel string
		driver func(*corev1.Pod)
		want   bool
	}{
		"another's":           {"5.15.0-1", nil, true},
		"the same":            {"5.15.0-2", nil, false},
		"one without as well": {"5.15.0-1", imageMissing, false},
	} {
		l := newLab()
		l.gpuNode("n").Status.NodeInfo.KernelVersion = "5.15.0-2"
		l.gpuNode("other").Status.NodeInfo.KernelVersion = k.kernel
		l.pod(parts.Driver, "n", imageMissing)
		l.pod(parts.Driver, "other", k.driver)
		for _, p := range l.Pods {
			p.Labels = map[string]string{"nvidia.com/precompiled": "true"}
		}
		w := view.New(l.State)
		if steps := Of(w).On(w.Nodes["n"]).Mends[0].Steps; strings.Contains(steps[len(steps)-1], ", as 5.15.0-1, which other runs") != k.want {
			t.Errorf("%s: %v", name, steps)
		}
	}
}
