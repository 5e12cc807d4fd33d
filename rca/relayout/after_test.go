package relayout

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// After another layout a node advertises what its sound GPUs then have; what it had before
// stays, at 0.
func TestWhatANodeAdvertisesAfterwards(t *testing.T) {
	ones := sim.All("A100-40GB", "1g.5gb")
	for name, tc := range map[string]struct {
		edit func(*view.Node, *Way)
		want string // of 1g.5gb, of 2g.10gb, of whole GPUs
	}{
		"one of two":      {func(*view.Node, *Way) {}, "7 3 none"},
		"the other sick":  {func(n *view.Node, _ *Way) { n.GPUs[1].Sick = true }, "0 3 none"},
		"it sick itself":  {func(n *view.Node, _ *Way) { n.GPUs[0].Sick = true }, "7 none none"},
		"both":            {func(_ *view.Node, w *Way) { w.Wanted[1] = placement.Layout{"2g.10gb": 2} }, "0 5 none"},
		"MIG switched on": {func(_ *view.Node, w *Way) { w.Mode = &view.ModeChange{Layouts: w.Wanted, Whole: 1} }, "0 3 1"},
	} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Layouts: [][]sim.Placed{ones, ones}})
		n := planner(t, w).Cluster.Nodes["n"]
		way := Way{Node: n, Now: []placement.Layout{{"1g.5gb": 7}, {"1g.5gb": 7}}, Wanted: map[int]placement.Layout{0: {"2g.10gb": 3}}}
		tc.edit(n, &way)
		after := way.After(n)
		var got []string
		for _, name := range []corev1.ResourceName{mig1g, mig2g, view.WholeGPU} {
			q, there := after[name]
			if !there {
				got = append(got, "none")
				continue
			}
			got = append(got, fmt.Sprint(q.Value()))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Who asks for two sorts of instances needs a layout that has both.
func TestALayoutForAllThatIsAsked(t *testing.T) {
	for name, tc := range map[string]struct{ ones, twos, want string }{
		"one of each":  {"1", "1", "all-balanced"},
		"one too many": {"1", "2", ""},
	} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.AddNode(sim.Node{Name: "n", Config: "all-7g.40gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}})
		w.Asking(rcatest.List(string(mig1g), tc.ones, string(mig2g), tc.twos))
		c := planner(t, w)
		for _, a := range c.asks {
			var got []string
			for _, r := range c.Ways(c.Cluster.Nodes["n"], a) {
				got = append(got, r.Config)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s, for %s: %q, want %q", name, a.Resource, got, tc.want)
			}
		}
	}
}
