package changes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// A patch of requests speaks of the containers that it edits, those of init too, and of no
// other.
func TestOnlyEditedContainersArePatched(t *testing.T) {
	gpu := func(name string) corev1.Container { return gpuContainer(name, 1) }
	plain := corev1.Container{Name: "plain", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}
	const main = `{"name":"main","resources":{"limits":{"nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"},"requests":{"nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"}}}`
	for name, tc := range map[string]struct {
		containers, init []corev1.Container
		want             string
	}{
		"one":           {[]corev1.Container{gpu("main")}, nil, `{"containers":[` + main + `]}`},
		"one of two":    {[]corev1.Container{plain, gpu("main")}, nil, `{"containers":[` + main + `]}`},
		"one of init":   {[]corev1.Container{plain}, []corev1.Container{plain, gpu("main")}, `{"initContainers":[` + main + `]}`},
		"both":          {[]corev1.Container{gpu("main")}, []corev1.Container{gpu("main")}, `{"containers":[` + main + `],"initContainers":[` + main + `]}`},
		"none asks any": {[]corev1.Container{plain}, nil, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.wait.Spec.Containers, w.wait.Spec.InitContainers = tc.containers, tc.init
			w.deployed()
			ch := w.bench(t, "Deployment").changeRequest(diagnosis.MIGLayoutMismatch, name, askOther(view.WholeGPU, mig1g))
			if got := asJSON(t, ch.template); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

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
		w.node(sim.Node{Name: "n", GPUs: 2, Strategy: "single", Config: "mine", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb"), sim.All("A100-40GB", "1g.5gb")}},
			func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/gpu.product"] += "-MIG-INVALID" })
		if tc.held {
			w.holder("h", "n", view.WholeGPU, 0)
		}
		c := w.bench(t, "Deployment")
		all := c.uniform(c.Node("n"))
		if len(all) != 1 {
			t.Fatalf("%s", toldAll(all))
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
