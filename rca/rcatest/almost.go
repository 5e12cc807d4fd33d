package rcatest

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
)

// Differences are all that may tell nodes of two classes apart, one at a time: of the
// layout, of the MIG mode now and after a reset, of the numbers of GPUs, of the config, of health.
var Differences = []string{"profile", "number", "empty", "mode", "current", "pending", "index", "source", "health"}

// AlmostAlike is a cluster of nodes that are the same but for one, which comes first or
// last and has one difference: who takes it for one of the others says of it, or of them,
// what is not so.
func AlmostAlike(r *rand.Rand, difference string) *cluster.State {
	st := &cluster.State{Now: Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
	nodes, holders := 2+r.IntN(2), r.IntN(3)
	odd := r.IntN(2) * (nodes - 1)
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb"}
	of, other := profiles[r.IntN(3)], profiles[r.IntN(3)]
	for i := range nodes {
		name := fmt.Sprintf("gpu-%02d", i)
		n := sim.Node{Name: name, Model: "A100-40GB", GPUs: 2, Strategy: "mixed", Config: "all-" + of, Labels: map[string]string{"zone": "1"},
			Layouts: [][]sim.Placed{sim.All("A100-40GB", of)[:2], nil}}
		if difference == "index" || difference == "source" { // what is worked out for a class of these is what switching MIG on makes
			n.Layouts, n.MIGOff = nil, []int{0, 1}
		}
		if i == odd {
			differInLayout(&n, difference, other)
		}
		o, geo := n.Object(Noon.Add(-time.Hour)), n.Geometry(Noon)
		for k := range holders {
			st.Pods = append(st.Pods, holderOn(o, geo, k))
		}
		if i == odd {
			differ(st, name, &geo.Report, difference)
		}
		st.Nodes, st.Geometries[name] = append(st.Nodes, o), geo
	}
	for i, asks := range []string{"mig-1g.5gb", "mig-2g.10gb", "mig-3g.20gb", "mig-7g.40gb", "gpu"} {
		st.Pods = append(st.Pods, randomWaiting(r, fmt.Sprintf("waiting-%d", i), "nvidia.com/"+asks))
	}
	return st
}

func differInLayout(n *sim.Node, difference, other string) {
	switch difference {
	case "profile":
		n.Layouts[0] = sim.All(n.Model, other)[:2]
	case "number":
		n.Layouts[0] = n.Layouts[0][:1]
	case "empty":
		n.Layouts[0], n.Layouts[1] = nil, n.Layouts[0]
	case "mode":
		n.MIGOff = []int{1}
	}
}

// differ changes what is reported of the second GPU, which has no instances, or what the node is
// laid out by.
func differ(st *cluster.State, name string, report *nodeprobe.Report, difference string) {
	switch difference {
	case "current":
		report.GPUs[1].MIG = &nodeprobe.MIGMode{Pending: true}
	case "pending":
		report.GPUs[1].MIG = &nodeprobe.MIGMode{Current: true}
	case "index":
		report.GPUs[1].Index = 5
	case "health":
		report.GPUs[0].Healthy = false
	case "source":
		st.ConfigMaps = append(st.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name + "-mig-config"},
			Data: map[string]string{"config.yaml": "version: v1\nmig-configs: {\"whole\": [{devices: all, mig-enabled: true, mig-devices: {7g.40gb: 1}}], thirds: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]}\n"}})
	}
}
