package stack

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// A pod of the stack that only waits to be started by a kubelet that is not Ready is not what is broken; one that fails by its
// own words is.
func TestWhatWaitsForItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		ready corev1.ConditionStatus
		edit  func(*corev1.Pod)
		want  bool
	}{
		"it waits, the node is not ready":  {corev1.ConditionFalse, age(time.Hour), true},
		"nobody hears of the node":         {corev1.ConditionUnknown, age(time.Hour), true},
		"it waits, the node is ready":      {corev1.ConditionTrue, age(time.Hour), false},
		"nothing is said of the node":      {"", age(time.Hour), false},
		"it fails, the node is not ready":  {corev1.ConditionFalse, crashes("no headers"), false},
		"its image is not there, nor node": {corev1.ConditionFalse, imageMissing, false},
	} {
		l := newLab()
		n := l.gpuNode("n")
		if tc.ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tc.ready}}
		}
		l.pod(parts.Driver, "n", tc.edit)
		w := view.New(l.State)
		if f := Of(w).On(w.Nodes["n"]); f == nil || f.Unready != tc.want {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A device plugin that may not read GPUs in MIG mode is given the right to, by who makes its pods.
func TestAPluginThatMayNotReadMIG(t *testing.T) {
	for name, tc := range map[string]struct {
		selector map[string]string
		want     string
	}{
		"the GPU Operator's": {map[string]string{deployPlugin: "true"}, "# the GPU Operator has it privileged"},
		"one's own":          {nil, `patch daemonset nvidia-device-plugin -p '{"spec":{"template":{"spec":{"containers":[{"name":"nvidia-device-plugin","securityContext":{"privileged":true`},
	} {
		l := newLab()
		l.gpuNode("n")
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = tc.selector
		l.sets[parts.Plugin].Spec.Template.Spec.RuntimeClassName = new("nvidia")
		for _, r := range []parts.Role{parts.Driver, parts.Toolkit} {
			l.pod(r, "n", nil)
		}
		l.pod(parts.Plugin, "n", crashes("error getting device memory info: "+parts.NotPermitted))
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || !strings.HasPrefix(f.Mends[0].Title, "let the device plugin read the GPUs of n that are in MIG mode") || !strings.Contains(strings.Join(f.Mends[0].Commands, "\n"), tc.want) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
