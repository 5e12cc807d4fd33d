package relayout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// wholes are nodes whose MIG is off, each GPU held.
func wholes(w *rcatest.World, names ...string) {
	for _, name := range names {
		w.AddNode(sim.Node{Name: name, MIGOff: []int{0}})
		w.AddHolder("h-"+name, name, view.WholeGPU, 0)
		w.Geometries[name].Report.GPUs[0].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "h-" + name, Container: "c"}}
	}
}

// All of a node's pods leave where MIG is switched on, gangs whole, but for those that
// belong to it; one that may not leave keeps all.
func TestANodeIsEmptied(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*rcatest.World)
		want string // empty: it cannot be
	}{
		"all":              {func(*rcatest.World) {}, "h-n p"},
		"not a daemon":     {func(w *rcatest.World) { w.Pods[2].OwnerReferences[0].Kind = "DaemonSet" }, "h-n"},
		"not a mirror":     {func(w *rcatest.World) { w.Pods[2].OwnerReferences[0].Kind = "Node" }, "h-n"},
		"nobody's too":     {func(w *rcatest.World) { w.Pods[2].OwnerReferences = nil }, "h-n p"},
		"one that may not": {func(w *rcatest.World) { *w.Pods[2].Spec.Priority = 1 }, ""},
		"a gang, whole": {func(w *rcatest.World) {
			wholes(w, "m")
			for _, i := range []int{1, 2, 3} {
				w.Pods[i].Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "g"}
			}
		}, "h-n p h-m"},
		"a gang of which one may not": {func(w *rcatest.World) {
			wholes(w, "m")
			for _, i := range []int{1, 3} {
				w.Pods[i].Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "g"}
			}
			*w.Pods[3].Spec.Priority = 1
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			wholes(w, "n")
			p := rcatest.Victim("p", 0, 0, 0, "p")
			p.Spec.NodeName = "n"
			w.Pods = append(w.Pods, p)
			tc.edit(w)
			c := planner(t, w)
			leave, ok := c.emptied(c.Cluster.Nodes["n"])
			var got []string
			for _, p := range leave {
				got = append(got, p.Name)
			}
			if ok != (tc.want != "") || ok && strings.Join(got, " ") != tc.want {
				t.Errorf("%v, %q; want %q", ok, got, tc.want)
			}
		})
	}
}

// MIG is switched on where the report tells who is there, MIG manager works under strategy
// mixed, and an entry makes as many as are asked, by another label than there is.
func TestWhereMIGIsSwitchedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		count int64
		edit  func(*view.Node)
		want  string
	}{
		"as many as there can be": {7, func(*view.Node) {}, "all-1g.5gb"},
		"one more":                {8, func(*view.Node) {}, ""},
		"several entries":         {2, func(*view.Node) {}, "all-1g.5gb all-balanced"},
		"by the label there is":   {7, func(n *view.Node) { n.Labels[view.LabelMIGConfig] = "all-1g.5gb" }, ""},
		"no report":               {1, func(n *view.Node) { n.Geometry = nil }, ""},
		"it cannot be read":       {1, func(n *view.Node) { n.Unreadable = true }, ""},
		"nobody knows who":        {1, func(n *view.Node) { n.HoldersKnown = false }, ""},
		"a DRA driver has them":   {1, func(n *view.Node) { n.Geometry.Report.Source = nodeprobe.SourceLabels }, ""},
		"strategy single":         {1, func(n *view.Node) { n.Labels[view.LabelMIGStrategy] = "single" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
			wholes(w, "n")
			c := planner(t, w)
			n := c.Cluster.Nodes["n"]
			tc.edit(n)
			var got []string
			for _, r := range c.modeChanges(n, view.Ask{Resource: mig1g, Profile: "1g.5gb", Count: tc.count}) {
				if got = append(got, r.Config); len(r.Victims) != 1 || r.Victims[0].Name != "h-n" || r.Mode == nil || !slices.Equal(r.Remade, []int{0}) {
					t.Errorf("%+v", r)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// MIG is switched on only where no other layout of a node's GPUs has what is asked.
func TestMIGIsSwitchedOnLast(t *testing.T) {
	for name, tc := range map[string]struct {
		node sim.Node
		want string // the configs, and whether MIG is switched on
	}{
		"all is whole":   {sim.Node{Name: "n", MIGOff: []int{0}}, "all-1g.5gb true"},
		"another has it": {sim.Node{Name: "n", Config: "x", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}}, "all-1g.5gb false"},
	} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.AddNode(tc.node)
		c := planner(t, w)
		var got []string
		for _, r := range c.Ways(c.Cluster.Nodes["n"], view.Ask{Resource: mig1g, Profile: "1g.5gb", Count: 7}) {
			got = append(got, fmt.Sprint(r.Config, " ", r.Mode != nil))
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
