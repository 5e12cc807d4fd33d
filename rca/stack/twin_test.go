package stack

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// A device plugin that sees no GPU on one of two nodes that are alike is that machine's matter; where they
// differ, or it is another plugin that sees some, nothing is told from the other node.
func TestAPluginThatWorksOnANodeAlike(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab, twin *corev1.Node)
		want bool
	}{
		"alike":                 {func(*lab, *corev1.Node) {}, true},
		"of another runtime":    {func(_ *lab, n *corev1.Node) { n.Status.NodeInfo.ContainerRuntimeVersion = "cri-o://1" }, false},
		"of another image":      {func(_ *lab, n *corev1.Node) { n.Status.NodeInfo.OSImage = "other" }, false},
		"of another kernel":     {func(_ *lab, n *corev1.Node) { n.Status.NodeInfo.KernelVersion = "6" }, false},
		"of another type":       {func(_ *lab, n *corev1.Node) { n.Labels[corev1.LabelInstanceTypeStable] = "g5.xlarge" }, false},
		"it has announced none": {func(_ *lab, n *corev1.Node) { n.Status.Capacity = nil }, false},
		"it has no such plugin": {func(l *lab, _ *corev1.Node) { l.Pods = l.Pods[:1] }, false},
		"it has another one":    {func(l *lab, _ *corev1.Node) { l.Pods[1].OwnerReferences[0].UID = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
			l.DaemonSets = l.DaemonSets[:0]
			l.DaemonSets = append(l.DaemonSets, l.sets[parts.Plugin])
			for _, name := range []string{"n", "m"} {
				n := l.gpuNode(name)
				n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
				l.pod(parts.Plugin, name, crashes("no card"))
			}
			twin := l.Nodes[1]
			twin.Status.Capacity = corev1.ResourceList{view.WholeGPU: *quantity(1)}
			k.edit(l, twin)
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil {
				t.Fatal("whole")
			}
			if got := strings.Contains(f.Says, "while that of m, which is the same on a node alike, finds them"); got != k.want || got && (len(f.Mends) != 1 || !strings.HasPrefix(f.Mends[0].Title, "see what the container runtime of n hands")) {
				t.Errorf("%s: %+v", f.Says, f.Mends)
			}
		})
	}
}
