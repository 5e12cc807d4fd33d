package relayout

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// held has the first instances of GPU 0 that are of a profile have holders that may leave.
func held(w *rcatest.World, profile string) {
	for _, in := range w.Geometries["n"].Report.GPUs[0].Instances {
		if in.Profile == profile {
			w.AddHolder(fmt.Sprint("h", in.Start), "n", corev1.ResourceName("nvidia.com/mig-"+profile), in.Start)
		}
	}
}

// made is what each way makes of the two GPUs.
func made(all []Way) string {
	var out []string
	for _, r := range all {
		l := r.Layouts()
		out = append(out, fmt.Sprintf("%d×2g %d×1g, %d×2g", l[0]["2g.10gb"], l[0]["1g.5gb"], l[1]["2g.10gb"]))
	}
	return strings.Join(out, "; ")
}

// An entry makes no more than are missing, so that who leaves gets back what is left: instances
// that are idle count, but for those of the GPU that is re-made.
func TestEntriesMakeWhatIsMissing(t *testing.T) {
	twos := func(starts ...int) []sim.Placed {
		var out []sim.Placed
		for _, at := range starts {
			out = append(out, sim.Placed{Profile: "2g.10gb", Start: at})
		}
		return out
	}
	ones := func(starts ...int) []sim.Placed {
		var out []sim.Placed
		for _, at := range starts {
			out = append(out, sim.Placed{Profile: "1g.5gb", Start: at})
		}
		return out
	}
	for name, tc := range map[string]struct {
		first, second []sim.Placed
		count         string
		want          string
	}{
		"three are idle on the other": {ones(0, 1, 2, 3, 4, 5, 6), twos(0, 2, 4), "5", "2×2g 3×1g, 3×2g"},
		"one is idle on each":         {append(twos(0), ones(2, 3, 4, 5, 6)...), append(twos(0), sim.Placed{Profile: "3g.20gb", Start: 4}), "3", "2×2g 3×1g, 1×2g"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			own(w)
			w.AddNode(sim.Node{Name: "n", GPUs: 2, Config: "x", Layouts: [][]sim.Placed{tc.first, tc.second}})
			held(w, "1g.5gb")
			for i := range w.Geometries["n"].Report.GPUs[1].Instances {
				if in := &w.Geometries["n"].Report.GPUs[1].Instances[i]; in.Profile == "3g.20gb" {
					*w.AddHolder("stays", "n", "nvidia.com/mig-3g.20gb").Spec.Priority = 1
					in.Holder = &nodeprobe.Holder{Namespace: "a", Pod: "stays", Container: "c"}
				}
			}
			w.Asking(rcatest.List(string(mig2g), tc.count))
			c := planner(t, w)
			if got := made(c.relayouts(c.Cluster.Nodes["n"], c.asks[0])); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Of several ways those are kept that cost least, in their order.
func TestTheWaysThatCostLeast(t *testing.T) {
	w := rcatest.NewWorld()
	for _, name := range []string{"x", "y", "z"} {
		w.Pods = append(w.Pods, rcatest.Victim(name, 0, 1, 0, name))
	}
	x, y, z := w.Pods[1], w.Pods[2], w.Pods[3]
	c := planner(t, w)
	for want, all := range map[string][]Way{
		"one same":  {{Config: "two", Victims: []*corev1.Pod{x, y}}, {Config: "one", Victims: []*corev1.Pod{x}}, {Config: "three", Victims: []*corev1.Pod{x, y, z}}, {Config: "same", Victims: []*corev1.Pod{z}}},
		"none":      {{Config: "none"}, {Config: "one", Victims: []*corev1.Pod{x}}},
		"none last": {{Config: "one", Victims: []*corev1.Pod{x}}, {Config: "none"}, {Config: "last"}},
		"":          nil,
	} {
		var got []string
		for _, r := range c.leastCostly(all) {
			if got = append(got, r.Config); r.Cost == nil {
				t.Errorf("%s has no cost", r.Config)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The fewest who would have to leave are those of one GPU, whichever it is.
func TestFewestOfTwoGPUs(t *testing.T) {
	ones, seven := sim.All("A100-40GB", "1g.5gb"), sim.All("A100-40GB", "7g.40gb")
	for name, layouts := range map[string][][]sim.Placed{"the first": {seven, ones}, "the second": {ones, seven}} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Layouts: layouts})
		for g := range layouts {
			for i := range layouts[g] {
				holder := fmt.Sprint("h", g, i)
				w.AddHolder(holder, "n", mig1g)
				w.Geometries["n"].Report.GPUs[g].Instances[i].Holder = &nodeprobe.Holder{Namespace: "a", Pod: holder, Container: "c"}
			}
		}
		c := planner(t, w)
		if n := c.HardwareEvictions(c.Cluster.Nodes["n"], view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); n == nil || *n != 1 {
			t.Errorf("%s: %v", name, n)
		}
	}
}

// own has MIG manager's config be a person's.
func own(w *rcatest.World) {
	w.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "mine"}}}}}}
	w.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "mine"}, Data: map[string]string{"config.yaml": "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n"}}}
}

// Who holds what is asked on a GPU is not made to leave it for a layout that is not made there:
// MIG manager clears the GPUs whose layout changes, and those alone.
func TestOnlyGPUsThatAreReMadeAreCleared(t *testing.T) {
	w := rcatest.NewWorld()
	own(w)
	second := []sim.Placed{{Profile: "2g.10gb", Start: 0}, {Profile: "2g.10gb", Start: 2}, {Profile: "3g.20gb", Start: 4}}
	w.AddNode(sim.Node{Name: "n", GPUs: 2, Config: "x", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb"), second}})
	held(w, "1g.5gb")
	for i, in := range second {
		name := fmt.Sprint("other", i)
		p := w.AddHolder(name, "n", corev1.ResourceName("nvidia.com/mig-"+in.Profile))
		p.Spec.Containers[0].Resources.Requests = rcatest.List("nvidia.com/mig-"+in.Profile, "1")
		w.Geometries["n"].Report.GPUs[1].Instances[i].Holder = &nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
	}
	w.Asking(rcatest.List(string(mig2g), "4"))
	c := planner(t, w)
	all := c.relayouts(c.Cluster.Nodes["n"], c.asks[0])
	if got := made(all); got != "3×2g 1×1g, 3×2g" {
		t.Errorf("%s", got)
	}
	for _, r := range all {
		if len(r.Victims) != 10 {
			t.Errorf("%d leave", len(r.Victims))
		}
	}
}

// What is idle on a GPU that stays as it is counts beside what is made of the others.
func TestIdleInstancesCountBesideGPUsThatAreReMade(t *testing.T) {
	w := rcatest.NewWorld()
	own(w)
	ones := sim.All("A100-40GB", "1g.5gb")
	w.AddNode(sim.Node{Name: "n", GPUs: 3, Config: "x", Layouts: [][]sim.Placed{ones, ones, {{Profile: "2g.10gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}}})
	held(w, "1g.5gb")
	hold := func(name, profile string, gpu, at int) *corev1.Pod {
		p := w.AddHolder(name, "n", corev1.ResourceName("nvidia.com/mig-"+profile))
		p.Spec.Containers[0].Resources.Requests = rcatest.List("nvidia.com/mig-"+profile, "1")
		w.Geometries["n"].Report.GPUs[gpu].Instances[at].Holder = &nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
		return p
	}
	for at := range ones {
		hold(fmt.Sprint("second", at), "1g.5gb", 1, at)
	}
	*hold("stays", "3g.20gb", 2, 1).Spec.Priority = 1
	for count, want := range map[string]string{"7": "3 3 1", "8": ""} {
		w.Asking(rcatest.List(string(mig2g), count))
		c := planner(t, w)
		got := ""
		for _, r := range c.relayouts(c.Cluster.Nodes["n"], c.asks[0]) {
			l := r.Layouts()
			got += fmt.Sprintf("%d %d %d", l[0]["2g.10gb"], l[1]["2g.10gb"], l[2]["2g.10gb"])
		}
		if got != want {
			t.Errorf("of %s: %q, want %q", count, got, want)
		}
	}
}

// Each GPU that completes what is idle elsewhere is a way of its own, where it costs the same;
// what is idle on the GPU itself does not stay when it is re-made.
func TestEitherGPUCompletesWhatIsIdle(t *testing.T) {
	ones := sim.All("A100-40GB", "1g.5gb")
	for want, c := range map[string]struct {
		asked   string
		layouts [][]sim.Placed
	}{
		"2 0 3; 0 2 3": {"5", [][]sim.Placed{ones, ones, sim.All("A100-40GB", "2g.10gb")}},
		"3 0; 1 2":     {"3", [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}, {Profile: "3g.20gb", Start: 4}}, ones}},
	} {
		w := rcatest.NewWorld()
		own(w)
		w.AddNode(sim.Node{Name: "n", GPUs: len(c.layouts), Config: "x", Layouts: c.layouts})
		w.Asking(rcatest.List(string(mig2g), c.asked))
		p := planner(t, w)
		var got []string
		for _, r := range p.relayouts(p.Cluster.Nodes["n"], p.asks[0]) {
			var made []string
			for i := range c.layouts {
				made = append(made, fmt.Sprint(r.Layouts()[i]["2g.10gb"]))
			}
			got = append(got, strings.Join(made, " "))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// An entry that is about some of a node's GPUs leaves the others as they are, and may have what is
// asked by itself.
func TestEntriesOfSomeGPUs(t *testing.T) {
	for count, want := range map[string]string{"7": "one", "8": ""} {
		w := rcatest.NewWorld()
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
		w.ConfigMaps[0].Data = map[string]string{"config.yaml": "version: v1\nmig-configs:\n  one: [{devices: [1], mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"}
		seven := sim.All("A100-40GB", "7g.40gb")
		w.AddNode(sim.Node{Name: "n", GPUs: 2, Config: "x", Layouts: [][]sim.Placed{seven, seven}})
		w.Asking(rcatest.List(string(mig1g), count))
		c := planner(t, w)
		var got []string
		for _, r := range c.relayouts(c.Cluster.Nodes["n"], c.asks[0]) {
			got = append(got, r.Config)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("of %s: %q, want %q", count, text, want)
		}
	}
}
