package layouts

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

const a100 = "A100-40GB"

// ones is a GPU with seven 1g.5gb, by an entry of the operator's config.
var ones = sim.Node{Name: "n", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}

type edits = []func(*corev1.Node, *nodeprobe.NodeGeometry)

func label(key, value string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[key] = value }
}

// written says that a label was written so long ago.
func written(key string, ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: "m", Time: &metav1.Time{Time: rcatest.Noon.Add(-ago)}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)})
	}
}

// row is a node, who holds instances of it by where they start, what is asked, and by reason
// what is told of it, besides the reasons that tell nothing.
type row struct {
	node  sim.Node
	edits edits
	holds []int
	asks  string
	count int64
	want  string
}

// reasons are all that are told here, in the order of their files.
var reasons = []struct {
	name string
	tell func(*view.Cluster, *view.Node, *Short) *view.Finding
}{
	{"failed", ConfigFailed}, {"in progress", ConfigInProgress}, {"invalid", ConfigInvalidForGPU}, {"stuck", ConfigStuck}, {"unknown", ConfigUnknown},
	{"fragmented", Fragmented}, {"full", Full}, {"in use", InstancesInUse}, {"drift", LayoutDrift}, {"lost", LayoutLost}, {"lost at boot", LostAtBoot}, {"mismatch", LayoutMismatch},
	{"mode", ModePending}, {"not capable", NotCapable}, {"unsupported", ProfileUnsupported}, {"strategy", StrategyMismatch},
}

// opened is the row's world, once it asks for what the row does and is as fill makes it, with its
// node and what that has too little of.
func (r row) opened(t *testing.T, w *rcatest.World, fill ...func(*rcatest.World)) (*view.Cluster, *view.Node, Short) {
	t.Helper()
	w.Asking(rcatest.List(r.asks, fmt.Sprint(max(1, r.count))))
	for _, f := range fill {
		f(w)
	}
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	n, s := v.Nodes["n"], Short{Ask: view.AsksOf(w.Wait)[0]}
	stock := n.StockOf(s.Ask.Resource)
	s.Allocatable, s.Capacity = stock.Allocatable, stock.Capacity
	return v, n, s
}

// told opens the row's world, once it is as fill makes it.
func (r row) told(t *testing.T, fill ...func(*rcatest.World)) string {
	t.Helper()
	w := rcatest.NewWorld()
	w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", a100)}
	w.AddNode(r.node, r.edits...)
	for i, start := range r.holds {
		for _, in := range r.node.Layouts[0] {
			if in.Start == start {
				w.AddHolder(fmt.Sprint("h", i), "n", corev1.ResourceName(view.MIGPrefix+in.Profile), start)
			}
		}
	}
	v, n, s := r.opened(t, w, fill...)
	out := ""
	for _, reason := range reasons {
		if f := reason.tell(v, n, &s); f != nil {
			out += fmt.Sprintf("%s, %s: %s\n", reason.name, f.Certainty, f.Says)
			if len(f.Evidence) == 0 || slices.ContainsFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Ref == "" || e.Fact == "" }) {
				t.Errorf("%s has no evidence: %+v", reason.name, f.Evidence)
			}
		}
	}
	return out
}

// Which reasons are told of a node whose MIG manager has been asked for something.
func TestWhatMIGManagerDid(t *testing.T) {
	const state, config, mig2g = view.LabelMIGState, view.LabelMIGConfig, "nvidia.com/mig-2g.10gb"
	as := func(value string, more ...func(*corev1.Node, *nodeprobe.NodeGeometry)) edits {
		return append(edits{label(state, value)}, more...)
	}
	const layout = "mismatch, proven: not laid out with 2g.10gb, though a legal position is unheld\n"
	const full = "full, proven: not enough unheld slices for 2g.10gb\n"
	for name, r := range map[string]row{
		"it is done":                   {ones, as("success"), nil, mig2g, 1, full + layout},
		"it failed, and who is there":  {ones, as("failed"), []int{2}, mig2g, 1, `failed, proven: MIG manager could not apply "all-1g.5gb", a/h0 still runs on its GPUs` + "\n" + full + layout},
		"it failed, and nobody is":     {ones, as("failed"), nil, mig2g, 1, `failed, proven: MIG manager could not apply "all-1g.5gb", and no pod holds a GPU of it: what does may run on the host (DCGM, nvidia-persistenced, nvidia_drm)` + "\n" + full + layout},
		"it failed, and offers enough": {ones, as("failed"), nil, "nvidia.com/mig-1g.5gb", 7, "full, proven: not enough unheld slices for 7 × 1g.5gb\nin use, proven: fewer 1g.5gb instances are free than it asks\nmismatch, proven: not laid out with 1g.5gb, though a legal position is unheld\n"},
		"it is at it":                  {ones, as("pending", written(state, 6*time.Minute)), nil, mig2g, 1, "in progress, proven: its MIG layout is being changed now\n" + full + layout},
		"for how long nobody knows":    {ones, as("pending"), nil, mig2g, 1, "in progress, possible: its MIG layout is being changed\n" + full + layout},
		"it is stuck":                  {ones, as("pending", written(state, 6*time.Minute+time.Second)), nil, mig2g, 1, "stuck, proven: MIG manager is stuck\n" + full + layout},
		"an entry that is not there":   {ones, as("success", label(config, "mine")), nil, mig2g, 1, "unknown, proven: mig.config \"mine\" names no entry of its config\n" + full + layout},
		"it has not begun yet": {ones, as("success", written(state, time.Hour), written(config, time.Minute)), nil, mig2g, 1,
			"in progress, likely: mig.config \"all-1g.5gb\" was asked for a moment ago, and MIG manager is about to begin\n" + full + layout},
		"its GPUs are otherwise": {ones, as("success", label(config, "all-2g.10gb")), nil, mig2g, 1, full + "drift, proven: mig.config \"all-2g.10gb\" was applied, its GPUs are laid out otherwise\n" + layout},
		"it has not acted on it": {ones, as("success", label(config, "all-2g.10gb"), written(state, time.Hour), written(config, 3*time.Minute)), nil, mig2g, 1,
			full + "drift, proven: mig.config \"all-2g.10gb\" is asked for since 11:57 UTC, and MIG manager has not acted on it: its success is of the layout before\n" + layout},
		"a mode that waits for a reset": {ones, as("success", func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].MIG.Pending = false }), nil, mig2g, 1, full + layout + "mode, proven: its MIG mode waits for a GPU reset or a reboot\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.told(t); got != r.want {
				t.Errorf("got\n%s\nwant\n%s", got, r.want)
			}
		})
	}
}

// named has ClusterPolicy name a ConfigMap of that data, beside the operator's own.
func named(data map[string]string) func(*rcatest.World) {
	return func(w *rcatest.World) {
		w.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "own"}}}}}}
		w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "own"}, Data: data})
	}
}

// MIG manager reads the ConfigMap that ClusterPolicy names and no other, whatever stands in that.
func TestAConfigMapWithoutEntries(t *testing.T) {
	const says = `unknown, proven: MIG manager finds no entry "all-1g.5gb": ConfigMap/gpu-operator/own, which ClusterPolicy names, `
	for name, k := range map[string]struct {
		state string
		data  map[string]string
		want  string
	}{
		"entries at the top": {"failed", map[string]string{"config.yaml": "all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]"}, says + "has no mig-configs in its config.yaml\n"},
		"no version":         {"failed", map[string]string{"config.yaml": "mig-configs: {all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]}"}, says + "has no version in its config.yaml\n"},
		"another key":        {"failed", map[string]string{"own.yaml": "version: v1\nmig-configs: {}"}, says + "has no key config.yaml\n"},
		"no YAML":            {"failed", map[string]string{"config.yaml": "version: v1\nmig-configs: ["}, says + "has a config.yaml that is not what mig-parted reads\n"},
		"not tried yet":      {"", map[string]string{}, says + "has no key config.yaml\n"},
		"applied before":     {"success", map[string]string{}, ""},
		"it has the entry":   {"failed", map[string]string{"config.yaml": "version: v1\nmig-configs: {all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := row{ones, edits{label(view.LabelMIGState, k.state)}, nil, "nvidia.com/mig-2g.10gb", 1, ""}.told(t, named(k.data))
			at := strings.Index(got, "unknown, ")
			if at >= 0 {
				got, _, _ = strings.Cut(got[at:], "\n")
				got += "\n"
			} else {
				got = ""
			}
			if got != k.want {
				t.Errorf("got  %swant %s", got, k.want)
			}
		})
	}
}

// Which reasons are told of positions, profiles and names.
func TestWhatANodeHasInstead(t *testing.T) {
	threes := sim.Node{Name: "n", Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}}}
	forgets := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		delete(n.Status.Allocatable, "nvidia.com/mig-3g.20gb")
		delete(n.Status.Capacity, "nvidia.com/mig-3g.20gb")
	}
	single := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "single" }
	without := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "none" }
	stale := func(_ *corev1.Node, g *nodeprobe.NodeGeometry) {
		g.Report.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
	}
	const big, small = "nvidia.com/mig-3g.20gb", "nvidia.com/mig-1g.12gb"
	for name, r := range map[string]row{
		"enough slices, no legal start":  {ones, nil, []int{1, 5}, big, 1, "fragmented, proven: enough slices are unheld, but no legal start for 3g.20gb\nfull, proven: not enough unheld slices for 3g.20gb\n"},
		"too few slices":                 {ones, nil, []int{0, 1, 2, 3, 4}, big, 1, "full, proven: not enough unheld slices for 3g.20gb\n"},
		"all are held":                   {threes, nil, []int{0, 4}, big, 1, "full, proven: not enough unheld slices for 3g.20gb\nin use, proven: its 3g.20gb instances are all held\n"},
		"made and not offered":           {threes, edits{forgets}, nil, big, 1, "full, proven: not enough unheld slices for 3g.20gb\ndrift, proven: its GPUs have 3g.20gb that the node does not advertise\nmismatch, proven: not laid out with 3g.20gb, though a legal position is unheld\n"},
		"an old report proves nothing":   {ones, edits{stale}, []int{0, 1, 2, 3, 4, 5}, big, 1, "full, possible: not enough unheld slices for 3g.20gb\n"},
		"no such profile":                {ones, nil, nil, small, 1, "full, proven: not enough unheld slices for 1g.12gb\nunsupported, proven: NVIDIA A100-SXM4-40GB has no profile 1g.12gb; the nearest is 1g.10gb\n"},
		"another name for it":            {threes, edits{single, forgets}, []int{0, 4}, big, 1, "full, proven: not enough unheld slices for 3g.20gb\nstrategy, proven: strategy single offers MIG devices as nvidia.com/gpu\n"},
		"no MIG is asked, strategy none": {threes, edits{without}, nil, view.WholeGPU, 1, ""},
		"no MIG is asked":                {threes, nil, nil, view.WholeGPU, 1, "strategy, proven: every GPU is partitioned, strategy mixed offers nvidia.com/mig-*\n"},
		"MIG is off, and nobody there":   {sim.Node{Name: "n", MIGOff: []int{0}}, nil, nil, big, 1, "mismatch, proven: MIG is off on a GPU that nobody holds\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.told(t); got != r.want {
				t.Errorf("got\n%s\nwant\n%s", got, r.want)
			}
		})
	}
}

// What is held of a request that a node offers enough of is no matter of its layout.
func TestWhatIsOffered(t *testing.T) {
	for name, tc := range map[string]struct {
		s                     Short
		offered, mig, isWhole bool
	}{
		"enough instances": {Short{view.Ask{Profile: "1g.5gb", Count: 2}, 2, 2}, true, true, false},
		"one too few":      {Short{view.Ask{Profile: "1g.5gb", Count: 2}, 1, 2}, false, true, false},
		"whole GPUs":       {Short{view.Ask{Count: 1}, 1, 1}, true, false, true},
	} {
		_, mig := tc.s.MIG()
		_, whole := tc.s.Whole()
		if tc.s.offered() != tc.offered || mig != tc.mig || whole != tc.isWhole {
			t.Errorf("%s: offered %v, MIG %v, whole %v", name, tc.s.offered(), mig, whole)
		}
	}
}
