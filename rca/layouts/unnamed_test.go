package layouts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// Of several reasons for one label a report tells which it is, else the words that the device plugin ended with.
func TestWhatSingleCannotName(t *testing.T) {
	invalid := edits{label(view.LabelMIGStrategy, "single"), label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-INVALID"), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		for name := range n.Status.Allocatable {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourcePods {
				delete(n.Status.Allocatable, name)
				delete(n.Status.Capacity, name)
			}
		}
	}}
	ends := func(words string, last bool) func(*rcatest.World) {
		return func(w *rcatest.World) {
			blind(w)
			component(w, "nvidia-device-plugin", "nvidia-device-plugin-daemonset-x", func(p *corev1.Pod) {
				end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: words}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: end}}
				if last {
					p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "c", LastTerminationState: end}
				}
			})
		}
	}
	ones := sim.All("A100-40GB", "1g.5gb")
	none := func(*rcatest.World) {}
	for name, tc := range map[string]struct {
		node sim.Node
		fill func(*rcatest.World)
		want string
	}{
		"two profiles":          {sim.Node{Name: "n", Layouts: [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}, {Profile: "1g.5gb", Start: 2}}}}, none, severalProfiles},
		"one is empty":          {sim.Node{Name: "n", GPUs: 2, Layouts: [][]sim.Placed{ones, {}}}, none, noInstances},
		"one is off":            {sim.Node{Name: "n", GPUs: 2, MIGOff: []int{1}, Layouts: [][]sim.Placed{ones}}, none, onBesideOff},
		"the label is behind":   {sim.Node{Name: "n", Layouts: [][]sim.Placed{ones}}, none, oneOfThese},
		"nothing says":          {sim.Node{Name: "n"}, blind, oneOfThese},
		"no words":              {sim.Node{Name: "n"}, ends("", true), oneOfThese},
		"it ends on profiles":   {sim.Node{Name: "n"}, ends("panic: More than one MIG device type present on node", true), severalProfiles},
		"it has ended on empty": {sim.Node{Name: "n"}, ends("panic: No MIG devices associated with\n GPU 0", false), noInstances},
		"it ends on modes":      {sim.Node{Name: "n"}, ends("all devices on the node must be configured with the same migEnabled value", true), onBesideOff},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (row{tc.node, invalid, nil, view.WholeGPU, 1, ""}).told(t, tc.fill); got != "strategy, proven: "+tc.want+", so nothing is offered\n" {
				t.Errorf("%s", got)
			}
		})
	}
}
