package stack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Trouble is of pods that have not ended, in their own words.
func TestTroubleOfAPod(t *testing.T) {
	for name, k := range map[string]struct {
		phase corev1.PodPhase
		edit  func(*corev1.Pod)
		want  string
	}{
		"ready":         {corev1.PodRunning, func(*corev1.Pod) {}, ""},
		"a container":   {corev1.PodRunning, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, "container nfd-worker running and not ready"},
		"not scheduled": {corev1.PodPending, func(p *corev1.Pod) { p.Spec.NodeName = "" }, "not scheduled: the scheduler has not spoken"},
		"ended":         {corev1.PodSucceeded, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }, ""},
	} {
		l := newLab()
		l.pod(parts.Discovery, "n", k.edit)
		l.Pods[0].Status.Phase = k.phase
		says, evidence, is := Of(view.New(l.State)).Trouble(l.Pods[0])
		if says != k.want || is != (k.want != "") || evidence.Fact != k.want || is && evidence.Ref != "Pod/gpu-operator/nfd-worker-n" {
			t.Errorf("%s: %q, %v, %+v", name, says, is, evidence)
		}
	}
}
