package changes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/view"
)

// Constraints that leave a node out are loosened as far as it takes, or to a wish; where one
// has no domain there, a wish alone helps.
func TestSpreadIsLoosened(t *testing.T) {
	zone := func(max int32, unmet corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: max, WhenUnsatisfiable: unmet, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}
	}
	rack := zone(1, corev1.DoNotSchedule)
	rack.TopologyKey = "rack"
	const raise, wish = "by plan, medium risk: raise the skew allowed over zone from 1 to 3 (less evenly spread) in deployment/w", "by plan, medium risk: wish only, and no longer require, to be spread over "
	for name, tc := range map[string]struct {
		spread []corev1.TopologySpreadConstraint
		node   string
		want   string
	}{
		"too many here":          {[]corev1.TopologySpreadConstraint{zone(1, corev1.DoNotSchedule)}, "a", raise + "; " + wish + "zone in deployment/w"},
		"as many as may be":      {[]corev1.TopologySpreadConstraint{zone(3, corev1.DoNotSchedule)}, "a", ""},
		"fewest here":            {[]corev1.TopologySpreadConstraint{zone(1, corev1.DoNotSchedule)}, "b", ""},
		"a wish already":         {[]corev1.TopologySpreadConstraint{zone(1, corev1.ScheduleAnyway)}, "a", ""},
		"no domain here":         {[]corev1.TopologySpreadConstraint{rack}, "a", wish + "rack in deployment/w"},
		"one of two has none":    {[]corev1.TopologySpreadConstraint{zone(1, corev1.DoNotSchedule), rack}, "a", wish + "zone, rack in deployment/w"},
		"a wish beside":          {[]corev1.TopologySpreadConstraint{zone(1, corev1.DoNotSchedule), {TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}}, "a", raise + "; " + wish + "zone in deployment/w"},
		"one that is met beside": {[]corev1.TopologySpreadConstraint{zone(3, corev1.DoNotSchedule), zone(1, corev1.DoNotSchedule)}, "a", raise + "; " + wish + "zone in deployment/w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.TopologySpreadConstraints = tc.spread
			w.Deployed()
			for _, node := range []string{"a", "b"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": node}})
			}
			for i, node := range []string{"a", "a", "a", "b"} {
				w.AddHolder(fmt.Sprint(i), node, "cpu").Labels = map[string]string{"app": "w"}
			}
			c := w.bench(t, "Deployment")
			if got := edittest.ToldAll(c.loosenSpread(c.Node(tc.node))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A domain of nodes with a taint that the pod does not tolerate counts as empty, unless the constraint leaves it out: that comes first,
// for the pods stay as even over the nodes that they may use. It has to be enough, and is nothing where it is so already.
func TestSpreadWithoutTaintedNodes(t *testing.T) {
	const leave, raise, wish = "by plan, medium risk: leave nodes whose taints it does not tolerate out of the spread over zone (nodeTaintsPolicy Honor) in deployment/w; ", "by plan, medium risk: raise the skew allowed over zone from 1 to 2 (less evenly spread) in deployment/w; ", "by plan, medium risk: wish only, and no longer require, to be spread over zone in deployment/w"
	honor := corev1.NodeInclusionPolicyHonor
	for name, tc := range map[string]struct {
		policy *corev1.NodeInclusionPolicy
		taint  bool
		on     []string
		want   string
	}{
		"an empty domain is tainted": {nil, true, []string{"a", "b"}, leave + raise + wish},
		"it is not":                  {nil, false, []string{"a", "b"}, raise + wish},
		"that is not enough":         {nil, true, []string{"a"}, raise + wish},
		"it is left out already":     {&honor, true, []string{"a"}, raise + wish},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: tc.policy, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}}
			w.Deployed()
			for _, node := range []string{"a", "b", "c"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": node}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
					if tc.taint && n.Name == "c" {
						n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
					}
				})
			}
			for i, node := range tc.on {
				w.AddHolder(fmt.Sprint(i), node, "cpu").Labels = map[string]string{"app": "w"}
			}
			c := w.bench(t, "Deployment")
			changes := c.loosenSpread(c.Node("a"))
			if got := edittest.ToldAll(changes); got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			p := w.Wait.DeepCopy()
			if changes[0].Pod(p); (p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy != nil) != (tc.policy != nil || strings.HasPrefix(tc.want, leave)) {
				t.Errorf("written: %+v", p.Spec.TopologySpreadConstraints[0])
			}
		})
	}
}

// A layout for all GPUs alike needs a report that can be believed.
func TestNobodyKnowsWhichLayoutCostsLeast(t *testing.T) {
	ones, sevens := sim.All("A100-40GB", "1g.5gb"), sim.All("A100-40GB", "7g.40gb")
	for name, edit := range map[string]func(*view.Node){
		"none":            func(n *view.Node) { n.Geometry = nil },
		"one in doubt":    func(n *view.Node) { n.Doubt = "it is old" },
		"one of some":     func(n *view.Node) { n.GPUs = n.GPUs[:1] },
		"one that is all": nil,
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Strategy: "single", Config: "mine", Layouts: [][]sim.Placed{ones, sevens}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/gpu.product"] += "-MIG-INVALID" })
		c := w.bench(t, "Deployment")
		if edit != nil {
			edit(c.Node("n"))
		}
		if got := c.uniform(c.Node("n")); len(got) != 1 || (got[0].Untestable == "") != (edit == nil) || strings.Contains(got[0].Commands[0], "=NAME ") != (edit != nil) {
			t.Errorf("%s: %s, %q", name, edittest.ToldAll(got), got[0].Commands)
		}
	}
}
