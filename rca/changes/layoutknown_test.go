package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// A layout is gone back to where it can be told what the GPUs have.
func TestLayoutsThatCannotBeTold(t *testing.T) {
	ones := [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}
	for name, tc := range map[string]struct {
		node sim.Node
		edit func(*corev1.Node, *nodeprobe.NodeGeometry)
		want string
	}{
		"told":             {sim.Node{Layouts: ones}, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, ""},
		"a sick GPU":       {sim.Node{Layouts: ones}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Healthy = false }, "GPU 0 of it is unhealthy: what MIG manager could make of it nobody knows"},
		"not partitioned":  {sim.Node{MIGOff: []int{0}}, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, "no GPU of it is known to be partitioned"},
		"another strategy": {sim.Node{Layouts: ones}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "single" }, `under strategy "single" what it advertises does not tell the layout`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.node.Name = "n"
			w.AddNode(tc.node, tc.edit)
			if got := unsureOfLayout(w.bench(t, "Deployment").Node("n")); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", Layouts: ones})
	n := w.bench(t, "Deployment").Node("n")
	for profile, want := range map[string]bool{"1g.5gb": true, "2g.10gb": false} {
		if got := laidOut(n, view.NamedLayouts{Layouts: map[int]placement.Layout{0: {profile: 7}}}); got != want {
			t.Errorf("laid out with 7 %s: %v", profile, got)
		}
	}
	n.Doubt = "no report of it can be believed"
	if got := unsureOfLayout(n); got != n.Doubt {
		t.Errorf("%q, want the doubt", got)
	}
}
