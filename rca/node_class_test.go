package rca

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		for i, st := range []*cluster.State{manyAlike(r), almostAlike(r, differences[seed%len(differences)])} {
			shared, w := diagnosed(t, st, func(*world) {})
			alone, _ := diagnosed(t, st, func(w *world) { w.classes, w.named, w.generated = nil, nil, nil })
			if len(w.classes) > len(w.nodes) {
				t.Fatalf("seed %d: %d classes of %d nodes", seed, len(w.classes), len(w.nodes))
			}
			for k := range shared {
				got, want := asJSON(t, shared[k]), asJSON(t, alone[k])
				if got != want {
					t.Fatalf("seed %d, cluster %d, %s: together\n%s\nalone\n%s", seed, i, shared[k].Workload.Name, got, want)
				}
				fixes += len(shared[k].Fixes)
			}
			nodes, classes = nodes+len(w.nodes), classes+len(w.classes)
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
	st := troubled(nodes, asks)
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
		if d := diagnosis(k, judged, causes, c.ranked(best, causes)); len(d.Nodes) != nodes || len(d.Fixes) == 0 {
			t.Fatalf("%d nodes, %d fixes", len(d.Nodes), len(d.Fixes))
		}
	})
}

// manyAlike is a random cluster of a few sorts of GPU nodes, several nodes of each, so
// that much is the same on them and never all: holders differ in priority, age, gang and
// budget, and now and then a node has something of its own.
func manyAlike(r *rand.Rand) *cluster.State {
	st := &cluster.State{Now: noon, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
	sorts := make([]sim.Node, 2+r.IntN(3))
	for i := range sorts {
		sorts[i] = randomSort(r)
	}
	for i := range 4 + r.IntN(9) {
		n := sorts[r.IntN(len(sorts))]
		n.Name = fmt.Sprintf("gpu-%02d", i)
		o, geo := n.Object(noon.Add(-time.Hour)), n.Geometry(noon)
		for k := range r.IntN(12) {
			p := holderOn(o, geo, k)
			randomHolder(r, p)
			st.Pods = append(st.Pods, p)
		}
		randomTrouble(r, o, geo)
		if st.Nodes = append(st.Nodes, o); r.IntN(12) > 0 {
			st.Geometries[n.Name] = geo
		}
	}
	for _, app := range []string{"serve", "train"} {
		if r.IntN(3) == 0 {
			st.PDBs = append(st.PDBs, budgetFor(app, int32(r.IntN(4))))
		}
	}
	randomConfig(r, st)
	for i, asks := range []string{"mig-1g.5gb", "mig-2g.10gb", "mig-3g.20gb", "mig-7g.40gb", "gpu", "gpu.shared", "mig-9g.90gb"} {
		st.Pods = append(st.Pods, randomWaiting(r, fmt.Sprintf("waiting-%d", i), "nvidia.com/"+asks))
	}
	return st
}

func randomSort(r *rand.Rand) sim.Node {
	model := []string{"A100-40GB", "A100-40GB", "A30-24GB"}[r.IntN(3)]
	n := sim.Node{Model: model, GPUs: 1 + r.IntN(3), Labels: map[string]string{"zone": fmt.Sprint(r.IntN(2))}, Cordoned: r.IntN(10) == 0,
		Strategy: []string{"mixed", "mixed", "mixed", "mixed", "single"}[r.IntN(5)]}
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"}
	if model == "A30-24GB" {
		profiles = []string{"1g.6gb", "2g.12gb"}
	}
	for g := range n.GPUs {
		profile := profiles[r.IntN(len(profiles))]
		n.Config = "all-" + profile
		if r.IntN(5) == 0 {
			n.MIGOff = append(n.MIGOff, g)
			n.Layouts = append(n.Layouts, nil)
			continue
		}
		placed := sim.All(model, profile)
		n.Layouts = append(n.Layouts, placed[:r.IntN(len(placed)+1)])
	}
	if r.IntN(5) == 0 {
		n.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func randomHolder(r *rand.Rand, p *corev1.Pod) {
	prio := int32(r.IntN(3) - 1)
	p.Spec.Priority = &prio
	p.Status.StartTime = &metav1.Time{Time: noon.Add(-time.Duration(1+r.IntN(5)) * time.Hour)}
	p.Labels = map[string]string{"app": []string{"serve", "train", "other"}[r.IntN(3)]}
	switch r.IntN(12) {
	case 0:
		p.Labels["pod-group.scheduling.sigs.k8s.io"] = fmt.Sprint("gang-", r.IntN(3))
	case 1:
		p.OwnerReferences[0].Kind = "DaemonSet"
	case 2:
		p.OwnerReferences = nil
	case 3:
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("60")
	}
}

func randomTrouble(r *rand.Rand, o *corev1.Node, geo *nodeprobe.NodeGeometry) {
	switch r.IntN(20) {
	case 0:
		o.Labels[labelMIGState] = "pending"
	case 1:
		o.Labels[labelMIGState] = "failed"
	case 2:
		o.Labels[labelMIGConfig] = "nobody-knows"
	case 3:
		geo.Report.ObservedAt = metav1.NewTime(noon.Add(-time.Hour))
	case 4:
		geo.Report.GPUs[0].Healthy = false
		for name, q := range o.Status.Allocatable {
			if isGPU(name) && q.Value() > 0 {
				q.Sub(resource.MustParse("1"))
				o.Status.Allocatable[name] = q
			}
		}
	case 5:
		if m := geo.Report.GPUs[0].MIG; m != nil {
			m.Pending = !m.Pending
		}
	case 6:
		geo.Report.Source = nodeprobe.SourceLabels
	case 7:
		o.Labels["zone"] = "9"
	case 8:
		for i := range geo.Report.GPUs {
			geo.Report.GPUs[i].Index += 2
		}
	case 9:
		for name := range o.Status.Allocatable {
			if isGPU(name) {
				o.Status.Allocatable[name] = resource.Quantity{}
			}
		}
	}
}

// randomConfig has the MIG manager read a config of a person, which may be added to.
func randomConfig(r *rand.Rand, st *cluster.State) {
	if r.IntN(2) == 0 {
		return
	}
	text := "version: v1\nmig-configs:\n"
	for _, e := range []string{
		"all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]", "all-2g.10gb: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]",
		"first: [{devices: [0], mig-enabled: true, mig-devices: {3g.20gb: 2}}, {devices: [1], mig-enabled: true, mig-devices: {2g.10gb: 2, 1g.5gb: 1}}]",
		"mixed: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}]", "all-disabled: [{devices: all, mig-enabled: false}]",
		"filtered: [{device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}]", "much: [{devices: all, mig-enabled: true, mig-devices: {7g.40gb: 3}}]",
	} {
		if r.IntN(3) > 0 {
			text += "  " + e + "\n"
		}
	}
	st.ConfigMaps = append(st.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "own"}, Data: map[string]string{migConfigKey: text}})
	if r.IntN(3) > 0 {
		st.ClusterPolicies = append(st.ClusterPolicies, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "own"}}}}})
	} else {
		st.ConfigMaps[0].Name = fallbackConfigMap
	}
}

func randomWaiting(r *rand.Rand, name, asks string) *corev1.Pod {
	p := benchPod(name, asks)
	prio := int32(r.IntN(2))
	p.Spec.Priority = &prio
	for _, list := range []corev1.ResourceList{p.Spec.Containers[0].Resources.Requests, p.Spec.Containers[0].Resources.Limits} {
		list[corev1.ResourceName(asks)] = *resource.NewQuantity(1+int64(r.IntN(8))/4, resource.DecimalSI)
		list[corev1.ResourceCPU] = *resource.NewQuantity([]int64{1, 1, 50, 200}[r.IntN(4)], resource.DecimalSI)
	}
	switch r.IntN(4) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"zone": "1"}
	case 1:
		p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "gpu-01"}
	}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
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
		st := &cluster.State{Now: noon, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
		for _, node := range []string{"gpu-1", "gpu-2"} {
			base.Name = node
			o, geo := base.Object(noon), base.Geometry(noon)
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
