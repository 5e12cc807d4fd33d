package terms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

func spreadOf(t *testing.T, w *rcatest.World) *Spread {
	t.Helper()
	s, _ := subject(t, w)
	return SpreadOf(s, LabelsOf(s))
}

// How far apart a node would leave the domains: from the one with the fewest pods, itself
// counted where the constraint is about it, and from none where there are too few domains.
func TestSkewOfANode(t *testing.T) {
	two, three := int32(2), int32(3)
	for name, tc := range map[string]struct {
		of      string // what app the constraint is about
		domains *int32
		keys    []string
		want    string
	}{
		"it is one of them":             {"w", nil, nil, "a 2 true, b 1 true, none 0 false"},
		"it is none of them":            {"x", nil, nil, "a 1 true, b 0 true, none 0 false"},
		"as many domains as needed":     {"w", &two, nil, "a 2 true, b 1 true, none 0 false"},
		"too few domains there":         {"w", &three, nil, "a 3 true, b 2 true, none 0 false"},
		"of its own revision alone":     {"w", nil, []string{"rev"}, "a 1 true, b 1 true, none 0 false"},
		"by a label that it has not":    {"w", nil, []string{"color"}, "a 2 true, b 1 true, none 0 false"},
		"of its own by one of two keys": {"w", nil, []string{"color", "rev"}, "a 1 true, b 1 true, none 0 false"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.Wait.Labels = map[string]string{"app": "w", "rev": "2"}
			w.Wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: tc.domains, MatchLabelKeys: tc.keys,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": tc.of}}}}
			for _, node := range []string{"a", "b"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": node}})
			}
			w.AddNode(sim.Node{Name: "none"})
			for i, node := range []string{"a", "a", "b", "b", "none"} {
				p := w.AddHolder(fmt.Sprint(i), node, "cpu")
				if p.Labels = map[string]string{"app": tc.of, "rev": "1"}; i == 3 {
					p.Namespace = "elsewhere"
				}
			}
			c := spreadOf(t, w)
			var got []string
			for _, node := range []string{"a", "b", "none"} {
				skew, ok := c.Skew(c.Cluster.Nodes[node], 0)
				got = append(got, fmt.Sprint(node, " ", skew, " ", ok))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("%q, want %s", got, tc.want)
			}
		})
	}
}

// Where no node has a domain, none can be said to be fuller than another.
func TestSkewWithoutDomains(t *testing.T) {
	w := rcatest.NewWorld()
	w.Wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}}}
	w.AddNode(sim.Node{Name: "none"})
	c := spreadOf(t, w)
	if skew, ok := c.Skew(c.Cluster.Nodes["none"], 0); skew != 0 || ok {
		t.Error(skew, ok)
	}
}

// Which nodes a spread constraint counts.
func TestNodesOfASpread(t *testing.T) {
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	w := rcatest.NewWorld()
	w.Wait.Spec.NodeSelector = map[string]string{"pool": "x"}
	taint := []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	w.AddNode(sim.Node{Name: "fits", Labels: map[string]string{"pool": "x"}})
	w.AddNode(sim.Node{Name: "other"})
	w.AddNode(sim.Node{Name: "tainted", Labels: map[string]string{"pool": "x"}, Taints: taint})
	c := spreadOf(t, w)
	for _, tc := range []struct {
		affinity, taints *corev1.NodeInclusionPolicy
		want             string
	}{
		{nil, nil, "fits tainted"}, {&honor, nil, "fits tainted"}, {&ignore, nil, "fits other tainted"}, {nil, &ignore, "fits tainted"}, {nil, &honor, "fits"}, {&ignore, &honor, "fits other"},
	} {
		var got []string
		for _, n := range c.Cluster.SortedNodes() {
			if c.over(corev1.TopologySpreadConstraint{NodeAffinityPolicy: tc.affinity, NodeTaintsPolicy: tc.taints}, n) {
				got = append(got, n.Name)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

// Of several constraints those are told that a node would break: too full a domain, or none. A wish
// is never broken.
func TestWhichConstraintIsBroken(t *testing.T) {
	w := rcatest.NewWorld()
	w.Wait.Labels = map[string]string{"app": "w"}
	of := func(key string, skew int32, when corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}
	}
	w.Wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{of("zone", 1, corev1.DoNotSchedule), of("host", 2, corev1.DoNotSchedule), of("zone", 1, corev1.ScheduleAnyway)}
	for name, zone := range map[string]string{"full": "a", "fuller": "b", "empty": "c", "full-zone": "a"} {
		w.AddNode(sim.Node{Name: name, Labels: map[string]string{"zone": zone, "host": name}})
	}
	w.AddNode(sim.Node{Name: "bare", Labels: map[string]string{"zone": "c"}})
	for i, node := range []string{"full", "fuller", "fuller", "fuller"} {
		w.AddHolder(fmt.Sprint(i), node, "cpu").Labels = map[string]string{"app": "w"}
	}
	c := spreadOf(t, w)
	for node, want := range map[string][]int{"full": {0}, "full-zone": {0}, "fuller": {0, 1}, "empty": nil, "bare": {1}} {
		if got := c.Broken(c.Cluster.Nodes[node]); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", node, got, want)
		}
	}
}
