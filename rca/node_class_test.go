package rca

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/rca/rcatest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher"
)

// What is worked out once for nodes that are alike is what each of them says alone.
func TestNodesOfAClassAsIfAlone(t *testing.T) {
	clusters := 120
	if testing.Short() {
		clusters = 40
	}
	nodes, classes, fixes := 0, 0, 0
	for seed := range clusters {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		for i, st := range []*cluster.State{rcatest.ManyAlike(r), rcatest.AlmostAlike(r, rcatest.Differences[seed%len(rcatest.Differences)])} {
			shared, w := diagnosed(t, st, func(*world) {})
			alone, _ := diagnosed(t, st, (*world).unshared)
			if w.classCount() > len(st.Nodes) {
				t.Fatalf("seed %d: %d classes of %d nodes", seed, w.classCount(), len(st.Nodes))
			}
			for k := range shared {
				got, want := asJSON(t, shared[k]), asJSON(t, alone[k])
				if got != want {
					t.Fatalf("seed %d, cluster %d, %s: together\n%s\nalone\n%s", seed, i, shared[k].Workload.Name, got, want)
				}
				fixes += len(shared[k].Fixes)
			}
			nodes, classes = nodes+len(st.Nodes), classes+w.classCount()
		}
	}
	if classes*4 > nodes*3 {
		t.Errorf("%d nodes are of %d classes: next to nothing was shared", nodes, classes)
	}
	t.Logf("%d clusters, %d nodes of %d classes, %d fixes", clusters, nodes, classes, fixes)
}

func diagnosed(t *testing.T, st *cluster.State, edit func(*world)) ([]Diagnosis, *world) {
	t.Helper()
	w, done, err := newWorld(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	edit(w)
	var out []Diagnosis
	for _, i := range watcher.Group(st.Pods, st.Owner) {
		d, err := newRun(w, Options{}).diagnose(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out, w
}

func asJSON(t *testing.T, d Diagnosis) string {
	t.Helper()
	b, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What one incident takes grows with the nodes, and no faster: by allocations, since a
// clock tells of the machine too.
func TestIncidentGrowth(t *testing.T) {
	const few, times = 160, 4
	for _, asks := range []string{"nvidia.com/mig-2g.10gb", "nvidia.com/gpu", "nvidia.com/mig-9g.90gb"} {
		a, b := incidentAllocs(t, few, asks), incidentAllocs(t, few*times, asks)
		if exponent := math.Log(b/a) / math.Log(times); exponent > 1.05 {
			t.Errorf("%s: %.0f allocations at %d nodes, %.0f at %d: exponent %.2f", asks, a, few, b, few*times, exponent)
		}
		if perNode := b / (few * times); perNode > 110 {
			t.Errorf("%s: %.0f allocations a node", asks, perNode)
		}
		t.Logf("%s: %.0f allocations at %d nodes, %.0f at %d", asks, a, few, b, few*times)
	}
}

// incidentAllocs are the allocations of an incident, what the scheduler's code is asked
// apart: each set of kinds is accepted at its first trial.
func incidentAllocs(t *testing.T, nodes int, asks string) float64 {
	t.Helper()
	st := rcatest.Troubled(nodes, asks)
	w, done, err := newWorld(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	incident := watcher.Group(st.Pods, st.Owner)[0]
	c, err := openCase(newLedger(w), incident)
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := w.snap.Explain(t.Context(), c.Pod)
	if err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(3, func() {
		k, err := openCase(newLedger(w), incident)
		if err != nil {
			t.Fatal(err)
		}
		k.verdict = verdict
		judged, causes := k.judge()
		c := newFinder(k, nil, nil)
		best, err := c.bestOf(t.Context(), c.candidates(judged), func(_ context.Context, f *candidate) error {
			f.fix.Proof.Verdict = Schedules
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if fixes := c.ranked(best, causes); len(judged) != nodes || len(fixes) == 0 {
			t.Fatalf("%d nodes, %d fixes", len(judged), len(fixes))
		}
	})
}

// Nodes are of one class when all that it is made from is the same on them.
func TestClassOf(t *testing.T) {
	base := sim.Node{Model: "A100-40GB", GPUs: 2, Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 6}}, nil}}
	for name, k := range map[string]struct {
		edit func(*corev1.Node, *nodeprobe.NodeGeometry, *cluster.State)
		same bool
	}{
		"the same": {func(*corev1.Node, *nodeprobe.NodeGeometry, *cluster.State) {}, true},
		"held": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) {
			g.Report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Unknown: true}
		}, true},
		"profile": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) {
			g.Report.GPUs[0].Instances[0].Profile = "1g.5gb+me"
		}, false},
		"instances": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) { g.Report.GPUs[0].Instances = nil }, false},
		"mode": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) {
			g.Report.GPUs[1].MIG = &nodeprobe.MIGMode{Pending: true}
		}, false},
		"pending": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) {
			g.Report.GPUs[1].MIG.Pending = false
		}, false},
		"no mode": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) { g.Report.GPUs[1].MIG = nil }, false},
		"index":   {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) { g.Report.GPUs[1].Index = 5 }, false},
		"number":  {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) { g.Report.GPUs = g.Report.GPUs[:1] }, false},
		"models": {func(_ *corev1.Node, g *nodeprobe.NodeGeometry, _ *cluster.State) {
			g.Report.GPUs[1].Profiles = g.Report.GPUs[1].Profiles[:2]
		}, false},
		"config": {func(n *corev1.Node, _ *nodeprobe.NodeGeometry, st *cluster.State) {
			st.ConfigMaps = append(st.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: n.Name + "-mig-config"},
				Data: map[string]string{migConfigKey: "version: v1\nmig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}\n"}})
		}, false},
	} {
		st := &cluster.State{Now: rcatest.Noon, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
		for _, node := range []string{"gpu-1", "gpu-2"} {
			base.Name = node
			o, geo := base.Object(rcatest.Noon), base.Geometry(rcatest.Noon)
			if node == "gpu-2" {
				k.edit(o, geo, st)
			}
			st.Nodes, st.Geometries[node] = append(st.Nodes, o), geo
		}
		w := view(st)
		if same := w.classOf(w.nodes["gpu-1"]) == w.classOf(w.nodes["gpu-2"]); same != k.same {
			t.Errorf("%s: of one class: %v", name, same)
		}
	}
}
