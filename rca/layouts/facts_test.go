package layouts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// shown is what a reason shows, a fact with its claims a line; empty where it tells nothing.
func (r row) shown(t *testing.T, tell func(*view.Cluster, *view.Node, *Short) *view.Finding, fill ...func(*rcatest.World)) string {
	t.Helper()
	w := rcatest.NewWorld()
	w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", a100)}
	w.AddNode(r.node, r.edits...)
	for i, start := range r.holds {
		w.AddHolder(fmt.Sprint("h", i), "n", mig1, start)
	}
	v, n, s := r.opened(t, w, fill...)
	f := tell(v, n, &s)
	if f == nil {
		return ""
	}
	var lines []string
	for _, e := range f.Evidence {
		line := e.Fact
		for _, k := range e.Claims {
			line += " | " + strings.TrimSpace(fmt.Sprintf("%s %s %s", k.Path, k.Op, k.Value))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// How many slices are held and free is shown of each GPU, and claimed as far as it is known who
// holds them.
func TestFactsOfSlices(t *testing.T) {
	two := sim.Node{Name: "n", GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), {{Profile: "7g.40gb", Start: 0}}}}
	fill := func(w *rcatest.World) {
		w.AddHolder("big", "n", "nvidia.com/mig-7g.40gb")
		w.Geometries["n"].Report.GPUs[1].Instances[0].Holder = &nodeprobe.Holder{Namespace: "a", Pod: "big", Container: "c"}
		w.Pods[len(w.Pods)-1].Spec.Containers[0].Resources.Requests = rcatest.List("nvidia.com/mig-7g.40gb", "1")
	}
	stale := func(_ *corev1.Node, g *nodeprobe.NodeGeometry) {
		g.Report.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
	}
	const big = "nvidia.com/mig-3g.20gb"
	const sum = "sum(report.gpus[index=%[1]d].instances[holder].size) = %[2]d | slices[%[1]d] = 8 | unheld[%[1]d] = %[3]d"
	const all = "sum(report.gpus[index=%[1]d].instances[*].size) = %[2]d | slices[%[1]d] = 8 | slices[%[1]d] - sum(report.gpus[index=%[1]d].instances[*].size) = %[3]d"
	r := row{two, nil, []int{0, 1, 2, 3, 4}, big, 1, ""}
	if got, want := r.shown(t, Full, fill), "at most 3 memory slices of one GPU are unheld | "+fmt.Sprintf(sum, 0, 5, 3)+" | "+fmt.Sprintf(sum, 1, 8, 0)+" | max(unheld) = 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.edits = edits{stale}
	if got, want := r.shown(t, Full, fill), "at most 1 memory slices of one GPU are known to be unheld | "+fmt.Sprintf(all, 0, 7, 1)+" | "+fmt.Sprintf(all, 1, 8, 0); got != want {
		t.Errorf("of an old report: %s, want %s", got, want)
	}
	r = row{two, nil, []int{1, 5}, big, 1, ""}
	if got, want := r.shown(t, Fragmented, fill), "GPU 0: 6 of 8 memory slices are unheld, 3g.20gb needs slices 0-3 or 4-7 | "+fmt.Sprintf(sum, 0, 2, 6); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A whole GPU could be partitioned that is in no MIG mode, healthy, held by nobody, and of a
// model that has the profile.
func TestWholeGPUsThatCouldBePartitioned(t *testing.T) {
	whole := sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}}
	on := func(i int, edit func(*nodeprobe.GPU)) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { edit(&g.Report.GPUs[i]) }
	}
	sick := func(g *nodeprobe.GPU) { g.Healthy = false }
	held := func(g *nodeprobe.GPU) { g.Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "h", Container: "c"}} }
	holder := func(w *rcatest.World) { // of the GPU that the report says is held
		for _, g := range w.Geometries["n"].Report.GPUs {
			if len(g.Holders) > 0 {
				w.AddHolder("h", "n", view.WholeGPU, 0)
			}
		}
	}
	const first, second = "GPU 0: MIG is off, nobody holds it", "GPU 1: MIG is off, nobody holds it"
	for name, tc := range map[string]struct {
		edits edits
		asks  string
		want  string
	}{
		"both":                 {nil, mig1, first},
		"the first is sick":    {edits{on(0, sick)}, mig1, second},
		"the first is held":    {edits{on(0, held)}, mig1, second},
		"the first has no MIG": {edits{on(0, func(g *nodeprobe.GPU) { g.MIG = nil })}, mig1, second},
		"none":                 {edits{on(0, sick), on(1, held)}, mig1, ""},
		"of no such profile":   {nil, "nvidia.com/mig-1g.12gb", ""},
		"nobody knows who is on": {edits{func(_ *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
		}}, mig1, ""},
		"the first is switched on": {edits{on(0, func(g *nodeprobe.GPU) { g.MIG.Current = true })}, "nvidia.com/mig-7g.40gb", second},
	} {
		t.Run(name, func(t *testing.T) {
			got := row{whole, tc.edits, nil, tc.asks, 1, ""}.shown(t, func(_ *view.Cluster, n *view.Node, s *Short) *view.Finding { return migOff(n, s.Ask) }, holder)
			if got, _, _ = strings.Cut(got, " | "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A layout that is asked for has a while to be begun with; then it drifts. Instances that are
// advertised several times do not compare, and strategies that name none of them neither.
func TestWhenALayoutDrifts(t *testing.T) {
	asked := func(ago time.Duration, more ...func(*corev1.Node, *nodeprobe.NodeGeometry)) edits {
		return append(edits{label(view.LabelMIGState, "success"), label(view.LabelMIGConfig, "all-2g.10gb"), written(view.LabelMIGState, time.Hour), written(view.LabelMIGConfig, ago)}, more...)
	}
	strategy := func(name string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return label(view.LabelMIGStrategy, name)
	}
	const exist = "\n0 instances of 2g.10gb exist | count(report.gpus[*].instances[profile=2g.10gb]) = 0"
	const labels = " | metadata.labels[nvidia.com/mig.config] = all-2g.10gb | metadata.labels[nvidia.com/mig.config.state] = success"
	const entry = " | data[config.yaml].mig-configs[all-2g.10gb] exists | data[config.yaml].mig-configs[all-2g.10gb][*].mig-devices[2g.10gb] = 3"
	for name, tc := range map[string]struct {
		edits edits
		want  string
	}{
		"a moment ago":             {asked(2 * time.Minute), ""},
		"a moment more":            {asked(2*time.Minute + time.Second), "label nvidia.com/mig.config=all-2g.10gb was written at 2026-11-20 11:57 UTC, after nvidia.com/mig.config.state=success" + labels + exist},
		"before it was said":       {asked(2 * time.Hour), "label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=success makes 3 of 2g.10gb" + entry + labels + exist},
		"it is shared":             {asked(2*time.Hour, label("nvidia.com/mig-2g.10gb.replicas", "2")), ""},
		"it is shared by one":      {asked(2*time.Hour, label("nvidia.com/mig-2g.10gb.replicas", "1")), "label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=success makes 3 of 2g.10gb" + entry + labels + exist},
		"nobody knows by how many": {asked(2*time.Hour, label("nvidia.com/mig-2g.10gb.replicas", "x")), "label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=success makes 3 of 2g.10gb" + entry + labels + exist},
		"under strategy single":    {asked(2*time.Hour, strategy("single")), ""},
		"under strategy none":      {asked(2*time.Hour, strategy("none")), ""},
		"it failed":                {asked(2*time.Hour, label(view.LabelMIGState, "failed")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (row{ones, tc.edits, nil, mig2, 1, ""}).shown(t, LayoutDrift); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	for ago, want := range map[time.Duration]bool{2 * time.Minute: true, 2*time.Minute + time.Second: false} {
		if got := (row{ones, asked(ago), nil, mig2, 1, ""}).shown(t, ConfigInProgress); (got != "") != want {
			t.Errorf("%s ago: %s", ago, got)
		}
	}
}

// Half of a board or more is spelled otherwise by other drivers; smaller profiles, and entries
// that switch MIG off, are not.
func TestNamesThatMoveWithTheDriver(t *testing.T) {
	for rules, want := range map[string]string{
		"{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 1, 4g.20gb: 1, 1g.5gb: 1}}":                                        "[3g.20gb 4g.20gb]",
		"{devices: [0], mig-enabled: true, mig-devices: {3g.20gb: 2}}, {devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 1}}": "[3g.20gb]",
		"{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}":                                                               "[]",
		"{devices: all, mig-enabled: false, mig-devices: {3g.20gb: 2}}":                                                              "[]",
		"{devices: all, mig-enabled: true, mig-devices: {odd: 2}}":                                                                   "[]",
	} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", a100)}
		mine(rules)(w)
		w.AddNode(sim.Node{Name: "n", Config: "mine"})
		blind(w)
		v, done, err := view.Open(t.Context(), w.State, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(OtherwiseSpelled(v, v.Nodes["n"])); got != want {
			t.Errorf("%s: %s, want %s", rules, got, want)
		}
		done()
	}
}

// The profiles of a model are claimed by its report; where that has none, by the product's label.
func TestClaimsAboutProfiles(t *testing.T) {
	const small = "nvidia.com/mig-1g.12gb"
	none := func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Profiles = nil }
	for name, tc := range map[string]struct {
		edits  edits
		fill   func(*rcatest.World)
		absent bool // that the report has not that profile is claimed
	}{
		"of a report":          {nil, func(*rcatest.World) {}, true},
		"of one without any":   {edits{none}, func(*rcatest.World) {}, false},
		"where nobody reports": {nil, blind, false},
	} {
		got := row{ones, tc.edits, nil, small, 1, ""}.shown(t, ProfileUnsupported, tc.fill)
		if strings.Contains(got, "report.gpus[*].profiles[name=1g.12gb] absent") != tc.absent || strings.Contains(got, "metadata.labels[nvidia.com/gpu.product] = ") == tc.absent {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := instances("1g.5gb.me", 1); got != nil {
		t.Errorf("of a profile that reports spell otherwise: %v", got)
	}
}

// A layout that is pending is stuck after six minutes; where nobody knows since when, once the
// capacity is gone, which the kubelet keeps for five.
func TestFactsOfWhatIsStuck(t *testing.T) {
	const labels = " | metadata.labels[nvidia.com/mig.config] = all-1g.5gb | metadata.labels[nvidia.com/mig.config.state] = pending"
	pending := label(view.LabelMIGState, "pending")
	for want, more := range map[string]func(*corev1.Node, *nodeprobe.NodeGeometry){
		"label nvidia.com/mig.config=all-1g.5gb, pending since 11:53 UTC" + labels: written(view.LabelMIGState, 6*time.Minute+time.Second),
		"": written(view.LabelMIGState, 6*time.Minute),
		"label nvidia.com/mig.config=all-1g.5gb, pending, and capacity is gone, which takes 5m0s" + labels: has(mig1, "0"),
	} {
		if got := (row{ones, edits{pending, more}, nil, mig2, 1, ""}).shown(t, ConfigStuck); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
