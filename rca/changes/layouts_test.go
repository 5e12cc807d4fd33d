package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// weary is a Weigher that has had enough of a kind of fix, or finds all of it pointless.
type weary struct {
	of        diagnosis.FixKind
	pointless bool
}

func (w weary) Enough(_ [][]edit.Change, more diagnosis.FixKind) bool { return more == w.of }
func (w weary) Pointless(_ *view.Node, _ [][]edit.Change, ch *edit.Change) bool {
	return w.pointless && ch.Relayout != nil
}

// A node is given another layout for a cause that admits it, where it lacks what is asked and
// that is worth trying; MIG is switched on where no layout alone helps, and who holds what else
// is lacking leaves before.
func TestWhereLayoutsAreOffered(t *testing.T) {
	sevens := sim.Node{Name: "n", Config: "all-7g.40gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}}
	whole := sim.Node{Name: "n", MIGOff: []int{0}}
	both := sim.Node{Name: "n", GPUs: 2, Config: "mine", MIGOff: []int{1}, Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}}
	const ones = `RepartitionGPU repartition n/GPU 0 to "all-1g.5gb"`
	host := func(w *world) *corev1.Pod { // holds a CPU, and no GPU
		p := w.AddHolder("h", "n", "cpu")
		p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
		return p
	}
	for name, tc := range map[string]struct {
		node  sim.Node
		asks  corev1.ResourceList
		fill  func(*world)
		cause diagnosis.CauseID
		w     Weigher
		want  string
	}{
		"for its layout":       {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGLayoutMismatch, willing{}, ones},
		"for another cause":    {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGInstancesInUse, willing{}, ones},
		"for what admits none": {sevens, list(string(mig1g), "7"), nil, diagnosis.GPUsInUse, willing{}, ""},
		"by a better config":   {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGConfigUnknown, willing{}, `FixMIGConfig repartition n/GPU 0 to "all-1g.5gb"`},
		"enough is known":      {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGLayoutMismatch, weary{of: diagnosis.RepartitionGPU}, ""},
		"enough of others":     {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGLayoutMismatch, weary{of: diagnosis.FixMIGConfig}, ones},
		"it is pointless":      {sevens, list(string(mig1g), "7"), nil, diagnosis.MIGLayoutMismatch, weary{pointless: true}, ""},
		"it has what is asked": {sevens, list("nvidia.com/mig-7g.40gb", "1"), nil, diagnosis.MIGLayoutMismatch, willing{}, ""},
		"no MIG is asked":      {sevens, list("nvidia.com/gpu", "1"), nil, diagnosis.MIGLayoutMismatch, willing{}, ""},
		"with a holder":        {sevens, list(string(mig1g), "7"), func(w *world) { w.AddHolder("h", "n", "nvidia.com/mig-7g.40gb", 0) }, diagnosis.MIGLayoutMismatch, willing{}, ones + ", evicting 1 pod"},
		"MIG is off":           {whole, list(string(mig1g), "7"), nil, diagnosis.MIGLayoutMismatch, willing{}, `RepartitionGPU switch MIG on for n/GPU 0 by "all-1g.5gb"`},
		"MIG is off, with a holder": {whole, list(string(mig1g), "7"), func(w *world) { w.AddHolder("p", "n", "cpu", 0) }, diagnosis.MIGLayoutMismatch, willing{},
			`RepartitionGPU switch MIG on for n/GPU 0 by "all-1g.5gb", evicting the 1 pod of the node`},
		"and a CPU that is held": {sevens, list(string(mig1g), "7", "cpu", "96"), func(w *world) { host(w) }, diagnosis.MIGLayoutMismatch, willing{},
			"EvictPods evict a/h from n, " + ones},
		"and a CPU that its holder has": {sevens, list(string(mig1g), "7", "cpu", "96"), func(w *world) {
			w.AddHolder("h", "n", "nvidia.com/mig-7g.40gb", 0).Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
		}, diagnosis.MIGLayoutMismatch, willing{}, ones + ", evicting 1 pod"},
		"and a CPU that nobody gives": {sevens, list(string(mig1g), "7", "cpu", "96"), func(w *world) { *host(w).Spec.Priority = 1 }, diagnosis.MIGLayoutMismatch, willing{}, ""},
		"and a GPU that it takes":     {both, list(string(mig1g), "7", "nvidia.com/gpu", "1"), nil, diagnosis.MIGLayoutMismatch, willing{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
			w.AddNode(tc.node)
			if tc.fill != nil {
				tc.fill(w)
			}
			w.Asking(tc.asks)
			c := w.bench(t, "Deployment")
			var got []string
			for _, set := range c.ResourceChanges(tc.w, c.Node("n"), []diagnosis.CauseID{tc.cause}, nil) {
				if !slices.ContainsFunc(set, func(ch edit.Change) bool { return ch.Relayout != nil }) {
					continue
				}
				var parts []string
				for _, ch := range set {
					parts = append(parts, fmt.Sprintf("%s %s", ch.Kind, ch.Title))
				}
				got = append(got, strings.Join(parts, ", "))
				last := set[len(set)-1]
				if on := strings.Contains(last.Title, "switch MIG on"); last.Cause != tc.cause || on != (last.Minutes == 10) || on != (last.Risk == diagnosis.MediumRisk) {
					t.Errorf("%s: for %s, %d min, %s risk", last.Title, last.Cause, last.Minutes, last.Risk)
				}
			}
			if text := strings.Join(got, "; "); text != tc.want {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
}
