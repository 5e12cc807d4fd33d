package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/rcatest"
)

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
				Data: map[string]string{MIGConfigKey: "version: v1\nmig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}\n"}})
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
		w := New(st)
		if same := w.ClassOf(w.Nodes["gpu-1"]) == w.ClassOf(w.Nodes["gpu-2"]); same != k.same {
			t.Errorf("%s: of one class: %v", name, same)
		}
	}
}
