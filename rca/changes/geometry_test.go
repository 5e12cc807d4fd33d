package changes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// What cannot be true of a GPU names it, frees nothing, and lets nobody give its
// node another layout.
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
			w := view.New(st)
			n := w.Nodes["n"]
			if !strings.Contains(n.Doubt, c.doubt) || n.Certainty() != diagnosis.Possible {
				t.Errorf("doubt %q, certainty %s; want %q", n.Doubt, n.Certainty(), c.doubt)
			}
			for _, g := range n.GPUs {
				for _, s := range g.Slots {
					if !s.Held {
						t.Errorf("free: %+v", s)
					}
				}
			}
			k := New(&causes.Case{Asker: evict.NewLedger(w).ForNextPod(), Pod: &corev1.Pod{}}, nil)
			if r := k.layouts().Ways(n, view.Ask{Resource: "nvidia.com/mig-2g.10gb", Profile: "2g.10gb", Count: 1}); len(r) > 0 {
				t.Errorf("%d layouts are offered", len(r))
			}
		})
	}
}
