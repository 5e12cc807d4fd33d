package changes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

// Taints that somebody has set are tolerated, all at once, by what they say; those that pass
// by themselves are not, and a node that goes is left alone.
func TestTaintsAreTolerated(t *testing.T) {
	team := corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	bare := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		has    []corev1.Toleration
		want   string
		add    []corev1.Toleration
	}{
		"one":                  {[]corev1.Taint{team}, nil, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"without a value":      {[]corev1.Taint{bare}, nil, "tolerate gpu:NoExecute in deployment/w", []corev1.Toleration{{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}}},
		"two":                  {[]corev1.Taint{team, bare}, nil, "tolerate team=x:NoSchedule, gpu:NoExecute in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}, {Key: "gpu", Operator: "Exists", Effect: "NoExecute"}}},
		"beside its own":       {[]corev1.Taint{team}, []corev1.Toleration{{Key: "a", Operator: "Exists"}}, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "a", Operator: "Exists"}, {Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"not one that passes":  {[]corev1.Taint{team, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, nil, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"none where it leaves": {[]corev1.Taint{team, {Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Taints: tc.taints})
			w.Wait.Spec.Tolerations = tc.has
			w.Deployed()
			c := w.bench(t, "Deployment")
			got := c.addToleration(c.Node("n"))
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("%s", edittest.ToldAll(got))
				}
				return
			}
			p := w.Wait.DeepCopy()
			got[0].Pod(p)
			if got[0].Title != tc.want || fmt.Sprint(p.Spec.Tolerations) != fmt.Sprint(tc.add) {
				t.Errorf("%s: %v, want %s: %v", got[0].Title, p.Spec.Tolerations, tc.want, tc.add)
			}
			want, _ := json.Marshal(tc.add)
			if patch := string(got[0].Actions[0].Patch); patch != `{"spec":{"template":{"spec":{"tolerations":`+string(want)+`}}}}` {
				t.Errorf("%s", patch)
			}
		})
	}
}

// What can be done about a node that unpend has taken is to wait for a plan, to open one that
// is mended, or a person's.
func TestNodesThatAreTaken(t *testing.T) {
	plan := strings.Repeat("a", 64)
	const see = "by hand, none risk: see to n, which is %s (nothing is planned with n before a person has released it)"
	const open = "by plan, high risk: uncordon n, which unpend keeps closed for its sick GPU"
	quarantined := diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Quarantined: "GPU 0"}
	closed := fmt.Sprintf(see, "quarantined by unpend: GPU 0")
	for name, tc := range map[string]struct {
		mark diagnosis.Operation
		edit func(*view.Node)
		also []diagnosis.CauseID
		want string
	}{
		"worked on":              {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon"}, nil, nil, "by hand, none risk: wait until unpend's plan aaaaaaa… for n has ended (what the plan makes of n is not known before it has ended)"},
		"parked":                 {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Parked: "it failed"}, nil, nil, fmt.Sprintf(see, "parked by unpend: it failed")},
		"quarantined, and well":  {quarantined, nil, nil, open},
		"and sick":               {quarantined, nil, nil, closed},
		"and nobody can read it": {quarantined, func(n *view.Node) { n.Unreadable = true }, nil, closed},
		"and it lacks something": {quarantined, nil, []diagnosis.CauseID{diagnosis.GPUsInUse}, closed},
		"with a way by hand":     {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Parked: "it failed"}, nil, []diagnosis.CauseID{diagnosis.MIGModePending}, fmt.Sprintf(see, "parked by unpend: it failed") + "; by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}, Cordoned: true}, func(n *corev1.Node, g *nodeprobe.NodeGeometry) {
				edittest.Mark(t, n, tc.mark)
				g.Report.GPUs[0].Healthy = name != "and sick"
			})
			c := w.bench(t, "Deployment")
			if tc.edit != nil {
				tc.edit(c.Node("n"))
			}
			if got := edittest.ToldAll(c.OfTaken(c.Node("n"), tc.also)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// What the pod asks besides what a layout is for has to be there too: more who hold it leave,
// or it cannot be.
func TestWhatAPodLacksBesideALayout(t *testing.T) {
	a := view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}
	for name, tc := range map[string]struct {
		asks  corev1.ResourceList
		fill  func(*world)
		want  string
		cause diagnosis.CauseID
	}{
		"nothing":                  {list(string(mig2g), "1"), nil, "map[]", diagnosis.HostResourcesShort},
		"CPU":                      {list(string(mig2g), "1", "cpu", "96"), func(w *world) { w.AddHolder("h", "n", "cpu", 0) }, "map[cpu:1000]", diagnosis.HostResourcesShort},
		"more CPU than there is":   {list(string(mig2g), "1", "cpu", "97"), nil, "", ""},
		"a whole GPU that is free": {list(string(mig2g), "1", "nvidia.com/gpu", "1"), nil, "map[]", diagnosis.HostResourcesShort},
		"a whole GPU that is held": {list(string(mig2g), "1", "nvidia.com/gpu", "1"), func(w *world) { w.AddHolder("h", "n", view.WholeGPU, 0) }, "map[nvidia.com/gpu:1000]", diagnosis.GPUsInUse},
		"more whole GPUs":          {list(string(mig2g), "1", "nvidia.com/gpu", "2"), nil, "", ""},
		"instances that are made":  {list(string(mig2g), "1", string(mig1g), "2"), nil, "map[]", diagnosis.HostResourcesShort},
		"instances that are held":  {list(string(mig2g), "1", string(mig1g), "2"), func(w *world) { w.AddHolder("h", "n", mig1g, 0) }, "map[nvidia.com/mig-1g.5gb:1000]", diagnosis.MIGInstancesInUse},
		"more than are made":       {list(string(mig2g), "1", string(mig1g), "3"), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{1}, Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
			if tc.fill != nil {
				tc.fill(w)
			}
			w.Asking(tc.asks)
			c := w.bench(t, "Deployment")
			n := c.Node("n")
			r := relayout.Way{Node: n, Now: c.Cluster.ClassOf(n).Layouts, Wanted: map[int]placement.Layout{0: {"1g.5gb": 2, "2g.10gb": 1}}, Remade: []int{0}}
			rest, ok := c.deficitsBeside(n, a, r)
			if got := fmt.Sprint(rest); ok != (tc.want != "") || ok && strings.Replace(got, "<nil>", "", 1) != tc.want {
				t.Errorf("%s, %v; want %s", got, ok, tc.want)
			}
			if ok && c.heldBeside(rest) != tc.cause {
				t.Errorf("for %s, want %s", c.heldBeside(rest), tc.cause)
			}
		})
	}
}
