package changes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/view"
)

// How far apart a node would leave the domains: from the one with the fewest pods, itself
// counted where the constraint is about it, and from none where there are too few domains.
func TestSkewOfANode(t *testing.T) {
	three := int32(3)
	for name, tc := range map[string]struct {
		of      string // what app the constraint is about
		domains *int32
		want    string
	}{
		"it is one of them":     {"w", nil, "a 2 true, b 1 true, none 0 false"},
		"it is none of them":    {"x", nil, "a 1 true, b 0 true, none 0 false"},
		"too few domains there": {"w", &three, "a 3 true, b 2 true, none 0 false"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: tc.domains,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": tc.of}}}}
			for _, node := range []string{"a", "b"} {
				w.node(sim.Node{Name: node, Labels: map[string]string{"zone": node}})
			}
			w.node(sim.Node{Name: "none"})
			for i, node := range []string{"a", "a", "b", "b", "none"} {
				p := w.holder(fmt.Sprint(i), node, "cpu")
				if p.Labels = map[string]string{"app": tc.of}; i == 3 {
					p.Namespace = "elsewhere"
				}
			}
			c, got := w.bench(t, "Deployment"), ""
			for i, node := range []string{"a", "b", "none"} {
				skew, ok := c.skew(c.Node(node), 0)
				got += []string{"", ", ", ", "}[i] + fmt.Sprint(node, " ", skew, " ", ok)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A layout is offered where a report can be read, tells who is on the GPUs, and is the
// driver's own.
func TestLayoutsNeedAReport(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*view.Node)
		want bool
	}{
		"it tells all":          {func(*view.Node) {}, true},
		"it cannot be read":     {func(n *view.Node) { n.Unreadable = true }, false},
		"nobody knows who":      {func(n *view.Node) { n.HoldersKnown = false }, false},
		"a DRA driver has them": {func(n *view.Node) { n.Geometry.Report.Source = "dra" }, false},
		"none":                  {func(n *view.Node) { n.Geometry = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.node(sim.Node{Name: "n", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
			c := w.bench(t, "Deployment")
			tc.edit(c.Node("n"))
			if got := c.relayouts(c.Node("n"), view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); (len(got) > 0) != tc.want {
				t.Errorf("%d layouts", len(got))
			}
		})
	}
}

// With single instances re-made, those leave who are the fewest; nobody can say so of
// holders that are not known.
func TestFewestByHardware(t *testing.T) {
	ones := sim.All("A100-40GB", "1g.5gb")
	for name, tc := range map[string]struct {
		known bool
		want  string
	}{
		"all is held":       {true, "2"},
		"holders not known": {false, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.node(sim.Node{Name: "n", Layouts: [][]sim.Placed{ones}})
			for _, at := range ones {
				name := fmt.Sprint("h", at.Start)
				if tc.known {
					w.holder(name, "n", mig1g, at.Start)
					continue
				}
				for i := range w.Geometries["n"].Report.GPUs[0].Instances {
					w.Geometries["n"].Report.GPUs[0].Instances[i].Holder = &nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
				}
			}
			c, got := w.bench(t, "Deployment"), "none"
			if n := c.hardwareEvictions(c.Node("n"), view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); n != nil {
				got = fmt.Sprint(*n)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
