package stack

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// What is to be done about a system without a driver image: by whose machine it is, and whether others have their
// driver by the GPU Operator.
func TestSystemsWithoutADriverImage(t *testing.T) {
	const (
		label  = "kubectl label node n " + DeployDriver + "=pre-installed --overwrite"
		off    = `kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"driver":{"enabled":false}}}'`
		google = "kubectl apply -f " + googlesInstaller + "cos/daemonset-preloaded.yaml"
		helm   = "helm upgrade gpu-operator nvidia/gpu-operator"
	)
	for name, tc := range map[string]struct {
		system   string
		edit     func(*lab, *corev1.Node)
		has, not []string
	}{
		"the only system":         {"debian12", func(*lab, *corev1.Node) {}, []string{off}, []string{label, google, helm}},
		"beside others":           {"debian12", func(l *lab, _ *corev1.Node) { l.gpuNode("other").Status.NodeInfo.OSImage = "Ubuntu" }, []string{label}, []string{off, google}},
		"Amazon's":                {"amzn2023", func(*lab, *corev1.Node) {}, []string{off}, []string{label, google, helm}},
		"Google's":                {"cos121", func(*lab, *corev1.Node) {}, []string{google, off, helm}, []string{label}},
		"Google's, beside others": {"cos121", func(l *lab, _ *corev1.Node) { l.gpuNode("other").Status.NodeInfo.OSImage = "Ubuntu" }, []string{google, label, "# where the GPU Operator looks"}, []string{off, helm}},
		"Google's, with a driver": {"cos121", func(_ *lab, n *corev1.Node) { n.Labels[gkeDriver] = "latest" }, []string{off, helm}, []string{label, google}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Status.NodeInfo.OSImage = "theirs"
			l.pod(parts.Driver, "n", noImage("nvcr.io/nvidia/driver:580.95.05-"+tc.system))
			tc.edit(l, n)
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil || len(f.Mends) != 1 || f.Mends[0].StopsUnknown || f.Mends[0].Victims != nil {
				t.Fatalf("%+v", f)
			}
			begins := func(command string) bool {
				return slices.ContainsFunc(f.Mends[0].Commands, func(c string) bool { return strings.HasPrefix(c, command) })
			}
			for _, c := range tc.has {
				if !begins(c) {
					t.Errorf("no %s in\n%s", c, strings.Join(f.Mends[0].Commands, "\n"))
				}
			}
			for _, c := range tc.not {
				if begins(c) {
					t.Errorf("%s in\n%s", c, strings.Join(f.Mends[0].Commands, "\n"))
				}
			}
		})
	}
}
