package changes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
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
			w.Wait.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: tc.domains,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": tc.of}}}}
			for _, node := range []string{"a", "b"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": node}})
			}
			w.AddNode(sim.Node{Name: "none"})
			for i, node := range []string{"a", "a", "b", "b", "none"} {
				p := w.AddHolder(fmt.Sprint(i), node, "cpu")
				if p.Labels = map[string]string{"app": tc.of}; i == 3 {
					p.Namespace = "elsewhere"
				}
			}
			c, got := w.bench(t, "Deployment"), ""
			for i, node := range []string{"a", "b", "none"} {
				skew, ok := c.spreads.skew(c.Node(node), 0)
				got += []string{"", ", ", ", "}[i] + fmt.Sprint(node, " ", skew, " ", ok)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
