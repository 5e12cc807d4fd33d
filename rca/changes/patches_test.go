package changes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/view"
)

// Who lays all GPUs out alike by hand closes the node only where somebody has to leave it.
func TestHowGPUsAreLaidOutAlike(t *testing.T) {
	for name, tc := range map[string]struct {
		held bool
		want []string // how the commands begin
	}{
		"nobody is there": {false, []string{"kubectl label node n nvidia.com/mig.config=all-1g.5gb ", "kubectl get node n "}},
		"somebody is":     {true, []string{"kubectl cordon n", "kubectl create --raw /api/v1/namespaces/a/pods/h/eviction ", "kubectl label node n nvidia.com/mig.config=all-1g.5gb ", "kubectl get node n ", "kubectl uncordon n"}},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Strategy: "single", Config: "mine", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb"), sim.All("A100-40GB", "1g.5gb")}},
			func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/gpu.product"] += "-MIG-INVALID" })
		if tc.held {
			w.AddHolder("h", "n", view.WholeGPU, 0)
		}
		c := w.bench(t, "Deployment")
		all := c.uniform(c.Node("n"))
		if len(all) != 1 {
			t.Fatalf("%s", edittest.ToldAll(all))
		}
		if !slices.EqualFunc(all[0].Commands, tc.want, strings.HasPrefix) || strings.Contains(all[0].Title, "evicting") != tc.held || len(all[0].Victims) > 0 != tc.held {
			t.Errorf("%s: %s, %q; want %q", name, all[0].Title, all[0].Commands, tc.want)
		}
		o := c.Node("n").DeepCopy()
		all[0].Node(o)
		if q := o.Status.Allocatable[view.WholeGPU]; q.Value() != 14 {
			t.Errorf("%s: %s", name, q.String())
		}
	}
}
