package stack

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// GKE's device plugin that is Ready and announces nothing waits for a driver, where GKE installs none and nobody else
// does; what speaks of a driver leaves it alone.
func TestNodesOfGKEWithoutADriver(t *testing.T) {
	const says = "DriverNotReady likely: "
	for name, k := range map[string]struct {
		edit func(l *lab, n *corev1.Node)
		want string
	}{
		"none":             {func(*lab, *corev1.Node) {}, "cos"},
		"none, of Ubuntu":  {func(_ *lab, n *corev1.Node) { n.Status.NodeInfo.OSImage = "Ubuntu 22.04" }, "ubuntu"},
		"GKE installs one": {func(_ *lab, n *corev1.Node) { n.Labels[gkeDriver] = "default" }, ""},
		"it is of no GKE":  {func(_ *lab, n *corev1.Node) { delete(n.Labels, view.LabelGKE) }, ""},
		"it had GPUs": {func(_ *lab, n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{view.WholeGPU: resource.MustParse("1")}
		}, ""},
		"somebody installs one": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Driver].Spec.Template.Spec.Containers[0].Name = "nvidia-driver-ctr"
			l.DaemonSets = append(l.DaemonSets, l.sets[parts.Driver])
		}, ""},
	} {
		l := newLab()
		l.DaemonSets = nil
		n := l.gpuNode("n")
		n.Labels = map[string]string{view.LabelGKE: "nvidia-l4", gkePool: "pool"}
		own := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-gpu-device-plugin", UID: "gke", CreationTimestamp: metav1.NewTime(noon.Add(-48 * 3600e9))}}
		own.Spec.Template.Spec.Containers = []corev1.Container{{Name: view.GKEPluginName}}
		l.sets[parts.Plugin], l.DaemonSets = own, []*appsv1.DaemonSet{own}
		l.pod(parts.Plugin, "n", nil)
		k.edit(l, n)
		w := view.New(l.State)
		got, image := "", ""
		if f := Of(w).On(w.Nodes["n"]); f != nil {
			got = fmt.Sprintf("%s %s: ", f.Cause, f.Certainty)
			if len(f.Mends) > 0 && len(f.Mends[0].Commands) > 0 {
				_, image, _ = strings.Cut(f.Mends[0].Commands[0], "nvidia-driver-installer/")
				image, _, _ = strings.Cut(image, "/")
			}
		}
		if (got == says) != (k.want != "") || k.want != "" && image != k.want {
			t.Errorf("%s: %q, %s, want %s", name, got, image, k.want)
		}
	}
}

// Of some pods of which one is enough none works where each of them is in trouble.
func TestAllOfThemAreInTrouble(t *testing.T) {
	for name, k := range map[string]struct {
		crash [2]bool
		want  string
	}{
		"both":    {[2]bool{true, true}, "nfd-worker-a"},
		"one":     {[2]bool{true, false}, ""},
		"neither": {[2]bool{false, false}, ""},
	} {
		l := newLab()
		for i, node := range []string{"a", "b"} {
			l.gpuNode(node)
			l.pod(parts.Discovery, node, func(p *corev1.Pod) {
				if k.crash[i] {
					crashes("no luck")(p)
				}
			})
		}
		s := Of(view.New(l.State))
		p, _, _, are := s.AllInTrouble(l.Pods)
		if are != (k.want != "") || are && p.Name != k.want {
			t.Errorf("%s: %v, %v", name, p, are)
		}
		if _, _, _, are := s.AllInTrouble(nil); are {
			t.Error("there is none")
		}
	}
}
