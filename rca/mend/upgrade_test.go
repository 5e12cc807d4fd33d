package mend

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
)

// silent takes from a node all that its device plugin has announced.
func silent(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
	for _, list := range []corev1.ResourceList{n.Status.Allocatable, n.Status.Capacity} {
		for name := range list {
			if strings.HasPrefix(string(name), "nvidia.com/") {
				delete(list, name)
			}
		}
	}
}

// An upgrade that has come to its end opens the node, with the GPUs that it then offers; where
// nobody knows how many those are, that is said. A cordon of somebody else's is not its matter.
func TestUpgradesThatEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		state    string
		reported bool
		edit     func(*corev1.Node, *nodeprobe.NodeGeometry)
		mends    int
		gpus     string // afterwards; empty: nobody knows
	}{
		"none":                      {"upgrade-done", true, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, 0, ""},
		"the GPUs are offered":      {"upgrade-failed", true, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, 1, "1"},
		"they are offered again":    {"upgrade-failed", true, silent, 1, "1"},
		"nobody knows what will be": {"upgrade-failed", false, silent, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}, Cordoned: true, Labels: map[string]string{stack.UpgradeState: tc.state}}, tc.edit)
			if !tc.reported {
				delete(w.Geometries, "n")
				delete(w.Nodes[0].Labels, "nvidia.com/gpu.count")
			}
			c := w.bench(t)
			n := c.Node("n")
			got := Upgrade(c, n)
			if len(got) != tc.mends {
				t.Fatalf("%+v", got)
			}
			for _, ch := range got {
				if (ch.Node == nil) != (tc.gpus == "") || (ch.Untestable == "") != (tc.gpus != "") {
					t.Fatalf("%+v", ch)
				}
				if ch.Node == nil {
					continue
				}
				o := n.DeepCopy()
				ch.Node(o)
				if q := o.Status.Allocatable["nvidia.com/gpu"]; o.Spec.Unschedulable || q.String() != tc.gpus {
					t.Errorf("%v, %s GPUs", o.Spec.Unschedulable, q.String())
				}
			}
		})
	}
}

// A broken link is mended for the cause that it is, and for no other.
func TestBrokenLinksAreMended(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, silent)
	w.AddNode(sim.Node{Name: "whole", MIGOff: []int{0}})
	c := w.bench(t)
	if got := Stack(c, c.Node("n"), diagnosis.GPUStackMissing); len(got) == 0 || got[0].Cause != diagnosis.GPUStackMissing {
		t.Errorf("%+v", got)
	}
	if got := Stack(c, c.Node("n"), diagnosis.DriverNotReady); got != nil {
		t.Errorf("for another cause: %+v", got)
	}
	if got := Stack(c, c.Node("whole"), diagnosis.GPUStackMissing); got != nil {
		t.Errorf("of a node that offers its GPUs: %+v", got)
	}
}
