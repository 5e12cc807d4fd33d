package changes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
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
			w.wait.Spec.TopologySpreadConstraints = tc.spread
			w.deployed()
			for _, node := range []string{"a", "b"} {
				w.node(sim.Node{Name: node, Labels: map[string]string{"zone": node}})
			}
			for i, node := range []string{"a", "a", "a", "b"} {
				w.holder(fmt.Sprint(i), node, "cpu").Labels = map[string]string{"app": "w"}
			}
			c := w.bench(t, "Deployment")
			if got := toldAll(c.loosenSpread(c.Node(tc.node))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A wait says who for, and until when where their deadlines tell.
func TestWaitsSayUntilWhen(t *testing.T) {
	hour := int64(3600)
	a, b := rcatest.Victim("a", 0, 1, time.Minute, "a"), rcatest.Victim("b", 0, 1, 31*time.Minute, "b")
	b.Spec.ActiveDeadlineSeconds = &hour
	w := newWorld()
	w.node(sim.Node{Name: "n"})
	c := w.bench(t, "Deployment")
	for _, tc := range []struct {
		holders      []*corev1.Pod
		until, title string
		minutes      int
	}{
		{[]*corev1.Pod{a}, "a/a on n ends", "wait until a/a leaves n", 0},
		{[]*corev1.Pod{b}, "a/b on n ends, by its deadline in 29 min", "wait until a/b leaves n", 29},
		{[]*corev1.Pod{a, b}, "2 pods (a/a, …) on n end", "wait until 2 pods (a/a, …) leave n", 0},
	} {
		ch := c.waitFor(c.Node("n"), diagnosis.GPUsInUse, tc.holders)
		ch.Detail(&ch)
		if ch.Until != tc.until || ch.Title != tc.title || ch.Minutes != tc.minutes || !ch.Manual || len(ch.Commands) != len(tc.holders) {
			t.Errorf("%q, %q, %d min, %d commands; want %q, %q, %d min", ch.Title, ch.Until, ch.Minutes, len(ch.Commands), tc.title, tc.until, tc.minutes)
		}
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
		w.node(sim.Node{Name: "n", GPUs: 2, Strategy: "single", Config: "mine", Layouts: [][]sim.Placed{ones, sevens}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/gpu.product"] += "-MIG-INVALID" })
		c := w.bench(t, "Deployment")
		if edit != nil {
			edit(c.Node("n"))
		}
		if got := c.uniform(c.Node("n")); len(got) != 1 || (got[0].Untestable == "") != (edit == nil) || strings.Contains(got[0].Commands[0], "=NAME ") != (edit != nil) {
			t.Errorf("%s: %s, %q", name, toldAll(got), got[0].Commands)
		}
	}
}
