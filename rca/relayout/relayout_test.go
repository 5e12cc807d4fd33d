package relayout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

const (
	mig1g = corev1.ResourceName("nvidia.com/mig-1g.5gb")
	mig2g = corev1.ResourceName("nvidia.com/mig-2g.10gb")
)

// planner is that of the pod that waits in a world.
func planner(t *testing.T, w *rcatest.World) *Planner {
	t.Helper()
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return New(evict.NewLedger(v).ForPod(w.Wait), view.AsksOf(w.Wait))
}

// A layout is one that makes as many as are asked, beside those that stay, from another label
// than the node has.
func TestLayoutsThatMakeEnough(t *testing.T) {
	sevens := [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}
	for name, tc := range map[string]struct {
		profile string
		count   int64
		gpus    int
		fill    func(*rcatest.World)
		want    string
	}{
		"as many as there can be": {"1g.5gb", 7, 1, nil, "all-1g.5gb"},
		"one more":                {"1g.5gb", 8, 1, nil, ""},
		"on two GPUs":             {"1g.5gb", 8, 2, nil, "all-1g.5gb"},
		"several do":              {"1g.5gb", 2, 1, nil, "all-1g.5gb all-balanced"},
		"the label is that":       {"1g.5gb", 7, 1, func(w *rcatest.World) { w.Nodes[0].Labels[view.LabelMIGConfig] = "all-1g.5gb" }, ""},
		"who is there may leave":  {"1g.5gb", 7, 1, func(w *rcatest.World) { w.AddHolder("h", "n", "nvidia.com/mig-7g.40gb", 0) }, "all-1g.5gb"},
		"or may not":              {"1g.5gb", 7, 1, func(w *rcatest.World) { *w.AddHolder("h", "n", "nvidia.com/mig-7g.40gb", 0).Spec.Priority = 1 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
			w.AddNode(sim.Node{Name: "n", GPUs: tc.gpus, Config: "all-7g.40gb", Layouts: slices.Repeat(sevens, tc.gpus)})
			if tc.fill != nil {
				tc.fill(w)
			}
			a := view.Ask{Resource: corev1.ResourceName("nvidia.com/mig-" + tc.profile), Profile: tc.profile, Count: tc.count}
			w.Asking(rcatest.List(string(a.Resource), fmt.Sprint(tc.count)))
			c := planner(t, w)
			var got []string
			for _, r := range c.relayouts(c.Cluster.Nodes["n"], a) {
				got = append(got, r.Config)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What those who leave held of the profile is free for the pod too.
func TestWhoLeavesLeavesRoom(t *testing.T) {
	for stays, want := range map[bool]string{false: "all-1g.5gb", true: ""} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}, sim.All("A100-40GB", "1g.5gb")}})
		w.AddHolder("h", "n", mig1g, 0)
		count := "14"
		if stays { // on the GPU that stays as it is
			other := w.AddHolder("other", "n", mig1g)
			other.Spec.Containers[0].Resources.Requests[mig1g] = rcatest.List("x", "1")["x"]
			w.Geometries["n"].Report.GPUs[1].Instances[0].Holder = &nodeprobe.Holder{Namespace: "a", Pod: "other", Container: "c"}
		}
		w.Asking(rcatest.List(string(mig1g), count))
		c := planner(t, w)
		var got []string
		for _, r := range c.relayouts(c.Cluster.Nodes["n"], c.asks[0]) {
			if got = append(got, r.Config); len(r.Victims) != 1 || r.Victims[0].Name != "h" {
				t.Errorf("%d leave", len(r.Victims))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("another stays %v: %q, want %q", stays, got, want)
		}
	}
}

// What pods hold of the same profile elsewhere on the node stays theirs.
func TestALayoutLeavesOthersTheirs(t *testing.T) {
	ones, sevens := sim.All("A100-40GB", "1g.5gb"), sim.All("A100-40GB", "7g.40gb")
	for held, want := range map[int][]string{0: {"all-1g.5gb"}, 2: {"all-1g.5gb"}} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Config: "mine", Layouts: [][]sim.Placed{ones, sevens}})
		for i := range held {
			w.AddHolder(fmt.Sprint("h", i), "n", mig1g, i)
		}
		for count, want := range map[int64][]string{int64(14 - held): want, int64(15 - held): nil} {
			w.Asking(rcatest.List(string(mig1g), fmt.Sprint(count)))
			c := planner(t, w)
			var got []string
			for _, r := range c.relayouts(c.Cluster.Nodes["n"], c.asks[0]) {
				if got = append(got, r.Config); len(r.Victims) != 0 {
					t.Errorf("%d leave", len(r.Victims))
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
			w := rcatest.NewWorld()
			const entry = "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n"
			at := "default-mig-parted-config"
			if tc.mine {
				at = "mine"
				w.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "mine"}}}}}}
			}
			w.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: at}, Data: map[string]string{"config.yaml": entry}}}
			w.AddNode(sim.Node{Name: "n", GPUs: tc.gpus, Config: "x", Layouts: make([][]sim.Placed, tc.gpus)})
			w.Asking(rcatest.List(string(mig2g), fmt.Sprint(tc.count)))
			c := planner(t, w)
			names := map[string]bool{}
			all := c.relayouts(c.Cluster.Nodes["n"], c.asks[0])
			for _, r := range all {
				if names[r.Config] = true; !strings.HasPrefix(r.Config, "unpend-") || r.Into == nil || r.Into.Name != at {
					t.Errorf("%+v", r)
				}
			}
			if len(all) != tc.want || len(names) != len(all) {
				t.Errorf("%d entries by %d names, want %d", len(all), len(names), tc.want)
			}
		})
	}
}

// A layout is offered where a report can be read, tells who is on the GPUs, and is the
// driver's own.
func TestLayoutsNeedAReport(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*view.Node)
		want bool
	}{
		"it tells all":          {func(*view.Node) {}, true},
		"it cannot be read":     {func(n *view.Node) { n.Unreadable = true }, false},
		"nobody knows who":      {func(n *view.Node) { n.HoldersKnown = false }, false},
		"a DRA driver has them": {func(n *view.Node) { n.Geometry.Report.Source = "dra" }, false},
		"none":                  {func(n *view.Node) { n.Geometry = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
			c := planner(t, w)
			tc.edit(c.Cluster.Nodes["n"])
			if got := c.relayouts(c.Cluster.Nodes["n"], view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); (len(got) > 0) != tc.want {
				t.Errorf("%d layouts", len(got))
			}
		})
	}
}

// With single instances re-made, those leave who are the fewest; nobody can say so of
// holders that are not known.
func TestFewestByHardware(t *testing.T) {
	ones := sim.All("A100-40GB", "1g.5gb")
	for name, tc := range map[string]struct {
		known bool
		want  string
	}{
		"all is held":       {true, "2"},
		"holders not known": {false, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Layouts: [][]sim.Placed{ones}})
			for _, at := range ones {
				name := fmt.Sprint("h", at.Start)
				if tc.known {
					w.AddHolder(name, "n", mig1g, at.Start)
					continue
				}
				for i := range w.Geometries["n"].Report.GPUs[0].Instances {
					w.Geometries["n"].Report.GPUs[0].Instances[i].Holder = &nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
				}
			}
			c, got := planner(t, w), "none"
			if n := c.HardwareEvictions(c.Cluster.Nodes["n"], view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); n != nil {
				got = fmt.Sprint(*n)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Of the GPUs that are re-made the first is named that has unheld what is asked, else the
// first.
func TestTheRoomiestGPU(t *testing.T) {
	w := rcatest.NewWorld()
	full, empty := sim.All("A100-40GB", "7g.40gb"), []sim.Placed{}
	w.AddNode(sim.Node{Name: "n", GPUs: 3, Layouts: [][]sim.Placed{full, empty, empty}})
	w.AddHolder("h", "n", "nvidia.com/mig-7g.40gb", 0)
	n := planner(t, w).Cluster.Nodes["n"]
	twos := placement.Layout{"2g.10gb": 3}
	asks := []view.Ask{{Resource: "cpu"}, {Resource: mig2g, Profile: "2g.10gb", Count: 1}}
	for name, tc := range map[string]struct {
		remade []int
		wanted map[int]placement.Layout
		want   int
	}{
		"the first that has room":     {[]int{0, 1, 2}, map[int]placement.Layout{0: twos, 1: twos, 2: twos}, 1},
		"that is re-made":             {[]int{0, 2}, map[int]placement.Layout{0: twos, 1: twos, 2: twos}, 2},
		"that gets it":                {[]int{0, 1, 2}, map[int]placement.Layout{0: twos, 1: {"1g.5gb": 7}, 2: twos}, 2},
		"none has room, so the first": {[]int{0}, map[int]placement.Layout{0: twos}, 0},
		"none gets it, so the first":  {[]int{1, 2}, map[int]placement.Layout{}, 1},
	} {
		if got := (Way{Node: n, Remade: tc.remade, Wanted: tc.wanted}).Roomiest(asks); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// Nothing is re-made where no GPU's counts change, and no GPU that is sick.
func TestWhatIsNotReMade(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
	c := planner(t, w)
	n := c.Cluster.Nodes["n"]
	for name, tc := range map[string]struct {
		edit func(*view.Remake)
		want bool
	}{
		"another layout":   {func(*view.Remake) {}, true},
		"the same layout":  {func(how *view.Remake) { how.GPUs = nil }, false},
		"of a sick GPU":    {func(how *view.Remake) { how.Sick = true }, false},
		"neither is there": {func(how *view.Remake) { how.GPUs, how.Sick = nil, true }, false},
	} {
		how := c.Cluster.ClassOf(n).RemakeBy(n, map[int]placement.Layout{0: {"2g.10gb": 3}})
		tc.edit(&how)
		if _, got := c.Remakes(n, how); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
