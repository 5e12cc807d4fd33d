package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// list is a ResourceList of pairs of a name and a quantity.
func list(pairs ...string) corev1.ResourceList { return rcatest.List(pairs...) }

// What a node offers counts where it is there: instances of its layout that pods do not
// hold, and whole GPUs whose MIG mode does not wait for a reset.
func TestOffersAreReal(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "mig", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
	for _, start := range []int{0, 1, 2, 3, 4} {
		w.AddHolder("h"+string(rune('0'+start)), "mig", mig1g, start)
	}
	w.AddNode(sim.Node{Name: "whole", MIGOff: []int{0}})
	w.AddNode(sim.Node{Name: "pending", MIGOff: []int{0}}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].MIG.Pending = true })
	w.AddNode(sim.Node{Name: "unreported", MIGOff: []int{0}})
	delete(w.Geometries, "unreported")
	c := w.bench(t, "Deployment")
	for _, tc := range []struct {
		node, resource string
		count          int64
		want           bool
	}{
		{"mig", string(mig1g), 2, true},
		{"mig", string(mig1g), 3, false},
		{"mig", string(mig2g), 1, false},
		{"mig", string(mig2g) + ".shared", 1, true},
		{"mig", "nvidia.com/gpu", 1, true},
		{"whole", "nvidia.com/gpu", 1, true},
		{"pending", "nvidia.com/gpu", 1, false},
		{"unreported", "nvidia.com/gpu", 1, true},
		{"unreported", string(mig2g), 1, true},
	} {
		if got := c.real(c.Node(tc.node), corev1.ResourceName(tc.resource), tc.count); got != tc.want {
			t.Errorf("%d %s of %s: %v", tc.count, tc.resource, tc.node, got)
		}
	}
}

// GPU resources of a node are compared by the slices of its board, but by what their names
// say where the profile asked for is of another board.
func TestSizesOfGPUs(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
	n := w.bench(t, "Deployment").Node("n")
	whole := view.GPUSize{Memory: 1 << 20, Compute: 1 << 10}
	for _, tc := range []struct {
		asked, of string
		want      view.GPUSize
	}{
		{"", string(mig2g), view.GPUSize{Memory: 2, Compute: 2}},
		{"", "nvidia.com/gpu", whole},
		{"1g.5gb", "nvidia.com/mig-3g.20gb", view.GPUSize{Memory: 4, Compute: 3}},
		{"1g.5gb", string(mig2g) + ".shared", view.GPUSize{Memory: 2, Compute: 2}},
		{"1g.12gb", "nvidia.com/mig-3g.20gb", view.GPUSize{Memory: 20, Compute: 3}},
		{"1g.12gb", "nvidia.com/gpu", whole},
	} {
		if got := sizes(n, view.Ask{Profile: tc.asked})(corev1.ResourceName(tc.of)); got != tc.want {
			t.Errorf("%s where %q is asked: %+v, want %+v", tc.of, tc.asked, got, tc.want)
		}
	}
}
