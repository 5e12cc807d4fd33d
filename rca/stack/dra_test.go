package stack

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Why NVIDIA's DRA driver offers no GPU; empty where nothing is seen to be wrong with it.
func TestDRADriver(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab)
		says string
	}{
		"not installed": {func(*lab) {}, "is not installed"},
		"not read":      {func(l *lab) { l.Unread["DaemonSet"] = "no right to list" }, ""},
		"half of it":    {func(l *lab) { l.kubeletPlugin("compute-domains") }, "runs with its GPUs switched off"},
		"kept off": {func(l *lab) {
			l.kubeletPlugin("compute-domains", "gpus").Spec.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.deploy.dra-driver": "true"}
		}, "does not run on n: it selects nodes by label nvidia.com/gpu.deploy.dra-driver=true, which is absent"},
		"crashes": {func(l *lab) {
			l.kubeletPlugin("compute-domains", "gpus")
			l.pod(parts.DRADriver, "n", crashes("no driver root"))
		}, "no driver root"},
		"runs": {func(l *lab) {
			l.kubeletPlugin("compute-domains", "gpus")
			l.pod(parts.DRADriver, "n", nil)
		}, ""},
	} {
		l := newLab()
		l.gpuNode("n")
		k.edit(l)
		got := Of(view.New(l.State)).DRADriver("gpu.nvidia.com", nil)
		if (got == nil) != (k.says == "") || got != nil && (!strings.Contains(got.Says, k.says) || len(got.Commands) == 0) {
			t.Errorf("%s: %+v", name, got)
		}
		if other := Of(view.New(l.State)).DRADriver("dra.example.com", nil); other != nil {
			t.Errorf("%s: of another driver %+v", name, other)
		}
	}
}

func (l *lab) kubeletPlugin(containers ...string) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "dra", Name: "kubelet-plugin"}}
	ds.Spec.Template.Labels = map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}
	for _, c := range containers {
		ds.Spec.Template.Spec.Containers = append(ds.Spec.Template.Spec.Containers, corev1.Container{Name: c})
	}
	l.sets[parts.DRADriver], l.DaemonSets = ds, append(l.DaemonSets, ds)
	return ds
}
