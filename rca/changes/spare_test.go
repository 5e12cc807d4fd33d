package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// What pods hold of the same profile elsewhere on the node stays theirs.
func TestALayoutLeavesOthersTheirs(t *testing.T) {
	ones, sevens := sim.All("A100-40GB", "1g.5gb"), sim.All("A100-40GB", "7g.40gb")
	for held, want := range map[int][]string{0: {"all-1g.5gb"}, 2: {"all-1g.5gb"}} {
		w := newWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.node(sim.Node{Name: "n", GPUs: 2, Config: "mine", Layouts: [][]sim.Placed{ones, sevens}})
		for i := range held {
			w.holder(fmt.Sprint("h", i), "n", mig1g, i)
		}
		for count, want := range map[int64][]string{int64(14 - held): want, int64(15 - held): nil} {
			w.asking(list(string(mig1g), fmt.Sprint(count)))
			c := w.bench(t, "Deployment")
			var got []string
			for _, r := range c.relayouts(c.Node("n"), c.Asks[0]) {
				if got = append(got, r.config); len(r.victims) != 0 {
					t.Errorf("%d leave", len(r.victims))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d asked where %d are held: %q, want %q", count, held, got, want)
			}
		}
	}
}

// Where the config is a person's an entry of its own is offered for each GPU that can have
// what is asked, once.
func TestEntriesOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		count int64
		gpus  int
		mine  bool
		want  int
	}{
		"either GPU":          {1, 2, true, 2},
		"the one GPU":         {1, 1, true, 1},
		"both together":       {4, 2, true, 1},
		"more than they have": {7, 2, true, 0},
		"not into NVIDIA's":   {1, 2, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			const entry = "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n"
			at := "default-mig-parted-config"
			if tc.mine {
				at = "mine"
				w.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "mine"}}}}}}
			}
			w.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: at}, Data: map[string]string{"config.yaml": entry}}}
			w.node(sim.Node{Name: "n", GPUs: tc.gpus, Config: "x", Layouts: make([][]sim.Placed, tc.gpus)})
			w.asking(list(string(mig2g), fmt.Sprint(tc.count)))
			c := w.bench(t, "Deployment")
			names := map[string]bool{}
			all := c.relayouts(c.Node("n"), c.Asks[0])
			for _, r := range all {
				if names[r.config] = true; !strings.HasPrefix(r.config, "unpend-") || r.into == nil || r.into.Name != at {
					t.Errorf("%+v", r)
				}
			}
			if len(all) != tc.want || len(names) != len(all) {
				t.Errorf("%d entries by %d names, want %d", len(all), len(names), tc.want)
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
