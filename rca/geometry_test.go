package rca

import (
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/rcatest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// What cannot be true of a GPU names it, frees nothing, and lets nobody lay its
// node out anew.
func TestReportsThatCannotBe(t *testing.T) {
	m, _ := nodeprobe.ModelOf("NVIDIA A100-SXM4-40GB")
	gpu := func(index int, uuid string, instances ...nodeprobe.Instance) nodeprobe.GPU {
		return nodeprobe.GPU{Index: index, UUID: uuid, Product: m.Names[0], Healthy: true, MIG: &nodeprobe.MIGMode{Current: true, Pending: true}, Profiles: m.Profiles, Instances: instances}
	}
	one := nodeprobe.Instance{Profile: "1g.5gb", Start: 0, Size: 1}
	bare := gpu(0, "GPU-a", one)
	bare.Profiles = []nodeprobe.Profile{{Name: "1g.5gb", ID: 19, ComputeSlices: 1, MemorySlices: 1, Max: 7}}
	cases := map[string]struct {
		gpus  []nodeprobe.GPU
		at    time.Duration // of the report, from now
		doubt string
	}{
		"overlap":                {gpus: []nodeprobe.GPU{gpu(0, "GPU-a", one, nodeprobe.Instance{Profile: "2g.10gb", Start: 0, Size: 2})}, doubt: "GPU 0 (GPU-a) of n"},
		"a start that is none":   {gpus: []nodeprobe.GPU{gpu(0, "GPU-a", nodeprobe.Instance{Profile: "2g.10gb", Start: 1, Size: 2})}, doubt: "GPU 0 (GPU-a) of n"},
		"size 0":                 {gpus: []nodeprobe.GPU{gpu(0, "GPU-a", nodeprobe.Instance{Profile: "1g.5gb", Start: 0})}, doubt: "GPU 0 (GPU-a) of n"},
		"two GPUs, one UUID":     {gpus: []nodeprobe.GPU{gpu(0, "GPU-a", one), gpu(1, "GPU-a", one)}, doubt: "GPU 1 of n: another has its UUID GPU-a too"},
		"profile without starts": {gpus: []nodeprobe.GPU{bare}, doubt: "GPU 0 (GPU-a) of n"},
		"clock skew":             {gpus: []nodeprobe.GPU{gpu(0, "GPU-a", one)}, at: 2 * time.Minute, doubt: "120 s in the future"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			geo := &nodeprobe.NodeGeometry{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Report: nodeprobe.Report{Source: nodeprobe.SourceNVML, ObservedAt: metav1.NewTime(rcatest.Noon.Add(c.at)), GPUs: c.gpus}}
			st := &cluster.State{Now: rcatest.Noon, Geometries: map[string]*nodeprobe.NodeGeometry{"n": geo}, Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}, Unread: map[string]string{}}
			w := view(st)
			n := w.nodes["n"]
			if !strings.Contains(n.doubt, c.doubt) || n.certainty() != Possible {
				t.Errorf("doubt %q, certainty %s; want %q", n.doubt, n.certainty(), c.doubt)
			}
			for _, g := range n.gpus {
				for _, s := range g.Slots {
					if !s.Held {
						t.Errorf("free: %+v", s)
					}
				}
			}
			k := NewBench(&Case{Asker: newLedger(w).forNextPod(), Pod: &corev1.Pod{}}, nil)
			if r := k.relayouts(n, ask{resource: "nvidia.com/mig-2g.10gb", profile: "2g.10gb", count: 1}); len(r) > 0 {
				t.Errorf("%d layouts are offered", len(r))
			}
		})
	}
}
