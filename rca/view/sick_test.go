package view

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// fourGPUs are a node of four whole GPUs, the first two of them sick: nobody holds the
// first, pod a the second, pod b the third. Each is offered as many times as given.
func fourGPUs(offered, capacity int64) (*cluster.State, *corev1.Node) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{WholeGPU: *resource.NewQuantity(offered, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("8")},
		Capacity:    corev1.ResourceList{WholeGPU: *resource.NewQuantity(capacity, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("8")}}}
	geo := &nodeprobe.NodeGeometry{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}, Report: nodeprobe.Report{ObservedAt: metav1.NewTime(rcatest.Noon), Source: nodeprobe.SourceNVML}}
	for i := range 4 {
		geo.Report.GPUs = append(geo.Report.GPUs, nodeprobe.GPU{Index: i, UUID: fmt.Sprint("GPU-", i), Healthy: i > 1})
	}
	st := &cluster.State{Now: rcatest.Noon, Nodes: []*corev1.Node{n}, Geometries: map[string]*nodeprobe.NodeGeometry{"gpu-1": geo}}
	for i, name := range []string{"a", "b"} {
		p := rcatest.Victim(name, 0, 1, 0, "x")
		p.Spec.NodeName = "gpu-1"
		st.Pods = append(st.Pods, p)
		geo.Report.GPUs[i+1].Holders = []nodeprobe.Holder{{Namespace: p.Namespace, Pod: p.Name, Container: "main"}}
	}
	return st, n
}

// What is on a sick GPU is nobody's room, no matter how much of it the device plugin still
// offers, and who leaves one makes none.
func TestSickGPUsAreNoRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		offered, capacity int64
		free              int64            // with nobody leaving
		gives             map[string]int64 // by who leaves
		sound             map[string]int64 // what the copy offers, by who has left
	}{
		"all are offered":             {4, 4, 1, map[string]int64{"a": 0, "b": 1}, map[string]int64{"": 3, "a": 2, "b": 3}},
		"one is no longer":            {3, 4, 0, map[string]int64{"a": 0, "b": 1}, map[string]int64{"": 2, "a": 2, "b": 2}},
		"the sick are not":            {2, 4, 0, map[string]int64{"a": 1, "b": 1}, map[string]int64{"": 2, "a": 2, "b": 2}},
		"all are, each as two shares": {8, 8, 4, map[string]int64{"a": 0, "b": 1}, map[string]int64{"": 6, "a": 4, "b": 6}},
	} {
		t.Run(name, func(t *testing.T) {
			st, node := fourGPUs(tc.offered, tc.capacity)
			n := New(st).Nodes["gpu-1"]
			if free := n.Free(WholeGPU); free.Value() != tc.free {
				t.Errorf("%d are free, want %d", free.Value(), tc.free)
			}
			pods := map[string]*corev1.Pod{"a": st.Pods[0], "b": st.Pods[1]}
			got := map[string]int64{}
			for name, p := range pods {
				got[name] = n.Contribution(p, WholeGPU) / 1000
			}
			if !maps.Equal(got, tc.gives) {
				t.Errorf("who leaves gives %v, want %v", got, tc.gives)
			}
			for who, want := range tc.sound {
				var leaving []*corev1.Pod
				if who != "" {
					leaving = append(leaving, pods[who])
				}
				sound := n.Sound(leaving)
				if q := sound.Status.Allocatable[WholeGPU]; q.Value() != want {
					t.Errorf("once %q has left the copy offers %d, want %d", who, q.Value(), want)
				}
				if q := sound.Status.Allocatable[corev1.ResourceCPU]; q.Value() != 8 {
					t.Errorf("%s of CPU", q.String())
				}
			}
			if q := node.Status.Allocatable[WholeGPU]; q.Value() != tc.offered {
				t.Errorf("the cluster's own node offers %d now", q.Value())
			}
		})
	}
}

// A pod that no number of evictions could help is not helped by those on sick GPUs.
func TestDeficitsLeaveSickGPUsOut(t *testing.T) {
	st, _ := fourGPUs(4, 4)
	n := New(st).Nodes["gpu-1"]
	asks := func(count int64) corev1.ResourceList {
		return corev1.ResourceList{WholeGPU: *resource.NewQuantity(count, resource.DecimalSI)}
	}
	if lack, ok := n.DeficitsOf(asks(2)); !ok || lack[WholeGPU] != 1000 {
		t.Errorf("two: %v, %v", lack, ok)
	}
	if lack, ok := n.DeficitsOf(asks(3)); ok {
		t.Errorf("three of two that are well: %v", lack)
	}
}

// A report that cannot be read leaves nothing free, and nobody's leaving makes room; what is
// no GPU's is as it was.
func TestUnreadableIsNoRoom(t *testing.T) {
	for name, edit := range map[string]func(*cluster.State){
		"it is no report": func(st *cluster.State) { st.Geometries, st.Illegible = nil, map[string]string{"gpu-1": "no list"} },
		"a GPU's health is not in": func(st *cluster.State) {
			st.Geometries["gpu-1"].Report.GPUs[3].Healthy, st.Geometries["gpu-1"].Report.GPUs[3].Untold = false, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, _ := fourGPUs(4, 4)
			edit(st)
			w := New(st)
			n := w.Nodes["gpu-1"]
			if free := n.Free(WholeGPU); free.Sign() != 0 || !n.Unreadable || n.Doubt == "" {
				t.Errorf("%s are free, %q", free.String(), n.Doubt)
			}
			for _, p := range st.Pods {
				if n.Contribution(p, WholeGPU) != 0 {
					t.Errorf("%s gives room", p.Name)
				}
			}
			if q := n.Sound(st.Pods).Status.Allocatable[WholeGPU]; q.Value() != 0 {
				t.Errorf("the copy offers %d", q.Value())
			}
			if cpu := n.Free(corev1.ResourceCPU); cpu.Sign() <= 0 {
				t.Errorf("%s of CPU", cpu.String())
			}
			if u := w.Unsound(); len(u) != 1 || u[0] != n {
				t.Errorf("%v", u)
			}
		})
	}
}

// A node that somebody has taken is closed on the copy; one that nobody has is itself.
func TestTakenIsClosed(t *testing.T) {
	for mark, want := range map[string]string{
		"": "",
		`{"op":"0123456789","id":"x","parked":"it failed"}`: "parked by unpend: it failed",
		`{"op":"0123456789","id":"x"}`:                      "worked on by plan 01234567 of unpend",
		`{"op":"0123456789"}`:                               "marked by somebody else: annotation unpend.dev/operation is not one of ours",
		"mine":                                              "marked by somebody else: annotation unpend.dev/operation is not one of ours",
		`{"op":"x","id":"x","quarantined":"GPU 0"}`:         "", // somebody has opened it again
	} {
		st, node := fourGPUs(2, 4)
		for i := range st.Geometries["gpu-1"].Report.GPUs {
			st.Geometries["gpu-1"].Report.GPUs[i].Healthy = true
		}
		if mark != "" {
			node.Annotations = map[string]string{diagnosis.OperationAnnotation: mark}
		}
		w := New(st)
		n := w.Nodes["gpu-1"]
		if got := n.Taken(); got != want {
			t.Errorf("%s: %q, want %q", mark, got, want)
		}
		if sound := n.Sound(nil); sound.Spec.Unschedulable != (want != "") || (sound == node) != (want == "") || (len(w.Unsound()) == 1) != (want != "") {
			t.Errorf("%s: %v", mark, sound.Spec)
		}
	}
}

// A plan for a node of healthy GPUs relies on nothing that a sick one adds, so that it is
// stale once one is.
func TestSickGPUIsAFact(t *testing.T) {
	st, _ := fourGPUs(4, 4)
	facts := NodeFacts(st, "gpu-1")
	if facts["gpu0/health"] != "unhealthy" || facts["gpu1/health"] != "unhealthy" {
		t.Error(facts)
	}
	if _, told := facts["gpu2/health"]; told {
		t.Error(facts)
	}
}
