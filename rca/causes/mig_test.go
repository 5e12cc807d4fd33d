package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

const a100 = "A100-40GB"

// laidOut is a node of one A100 with instances, of which pods may hold some.
func laidOut(placed ...sim.Placed) sim.Node {
	return sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{placed}, Config: "own"}
}

func label(key, value string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[key] = value }
}

// Why a MIG profile cannot be had: what is so by layout, positions and holders.
func TestMIGPositions(t *testing.T) {
	wants := func(w *world, profile string, count int64) { w.pod("w", "", "nvidia.com/mig-"+profile, count) }
	rows{
		"a legal position that nobody holds is a matter of the layout": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 0)
			wants(w, "2g.10gb", 1)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 2, nobody holds it; the layout is 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"of two GPUs the first with a position is named, and both give room": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "7g.40gb"), sim.All(a100, "1g.5gb")}, Config: "own"})
			w.holds(w.pod("h", "n1", "nvidia.com/mig-7g.40gb", 1), 0, 0)
			wants(w, "2g.10gb", 3)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 1: 2g.10gb could start at memory slice 4, nobody holds it; the layout is 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"more than the GPUs have room for is no matter of the layout": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "2g.10gb", 4)
		}, `
MIGFull proven n1: not enough unheld slices for 4 × 2g.10gb
  NodeGeometry/n1: at most 8 memory slices of one GPU are unheld
`},
		"a GPU with MIG off that nobody holds could be partitioned": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, MIGOff: []int{0}})
			wants(w, "2g.10gb", 1)
		}, `
MIGLayoutMismatch proven n1: MIG is off on a GPU that nobody holds
  NodeGeometry/n1: GPU 0: MIG is off, nobody holds it
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"one that is held cannot, and what other GPUs have is full": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0}, Layouts: [][]sim.Placed{nil, sim.All(a100, "7g.40gb")}, Config: "own"})
			w.holds(w.pod("h", "n1", "nvidia.com/gpu", 1), 0)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-7g.40gb", 1), 1, 0)
			wants(w, "2g.10gb", 1)
		}, `
MIGFull proven n1: not enough unheld slices for 2g.10gb
  NodeGeometry/n1: at most 0 memory slices of one GPU are unheld
`},
		"enough slices without a legal start are fragmented": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 1)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 5)
			wants(w, "3g.20gb", 1)
		}, `
MIGFragmented proven n1: enough slices are unheld, but no legal start for 3g.20gb
  NodeGeometry/n1: GPU 0: 6 of 8 memory slices are unheld, 3g.20gb needs slices 0-3 or 4-7
`},
		"too few slices are full": {func(w *world) {
			w.gpuNode(laidOut(sim.Placed{Profile: "4g.20gb", Start: 0}, sim.Placed{Profile: "2g.10gb", Start: 4}, sim.Placed{Profile: "1g.5gb", Start: 6}))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-4g.20gb", 1), 0, 0)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-2g.10gb", 1), 0, 4)
			wants(w, "3g.20gb", 1)
		}, `
MIGFull proven n1: not enough unheld slices for 3g.20gb
  NodeGeometry/n1: at most 2 memory slices of one GPU are unheld
`},
		"instances that exist and are held are in use, whatever else there is": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "3g.20gb")...))
			for i, start := range []int{0, 4} {
				w.holds(w.pod([]string{"g", "h"}[i], "n1", "nvidia.com/mig-3g.20gb", 1), 0, start)
			}
			wants(w, "3g.20gb", 1)
		}, `
MIGInstancesInUse proven n1: its 3g.20gb instances are all held
  Node/n1: allocatable nvidia.com/mig-3g.20gb=2, requested 2
`},
		"more instances than the node has are a matter of the layout": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 0}}, {{Profile: "3g.20gb", Start: 0}}}, Config: "own"})
			wants(w, "3g.20gb", 3)
		}, `
MIGLayoutMismatch proven n1: not laid out with 3g.20gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 3g.20gb could start at memory slice 4, nobody holds it; the layout is 3g.20gb@0
  Node/n1: allocatable nvidia.com/mig-3g.20gb=2, requested 0
`},
		"a report that is old proves nothing of holders": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...), func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
			})
			wants(w, "2g.10gb", 1)
		}, `
MIGFull possible n1: not enough unheld slices for 2g.10gb
  NodeGeometry/n1: at most 1 memory slices of one GPU are known to be unheld
`},
		"a profile that the model has not, with the nearest": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "1g.12gb", 1)
		}, `
MIGProfileUnsupported proven n1: NVIDIA A100-SXM4-40GB has no profile 1g.12gb; the nearest is 1g.10gb
  NodeGeometry/n1: NVIDIA A100-SXM4-40GB has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb
`},
		"by its label a model is only likely to be what it is": {func(w *world) {
			w.unreported(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "9g.90gb", 1)
		}, `
MIGProfileUnsupported likely n1: NVIDIA-A100-SXM4-40GB has no profile 9g.90gb
  Node/n1: NVIDIA-A100-SXM4-40GB has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb
`},
		"a model without MIG, by its report": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"})
			wants(w, "1g.5gb", 1)
		}, `
GPUNotMIGCapable proven n1: L4 has no MIG
  NodeGeometry/n1: no GPU of the node reports a MIG mode
`},
		"a model without MIG, by its label": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4"})
			wants(w, "1g.5gb", 1)
		}, `
GPUNotMIGCapable likely n1: L4 has no MIG
  Node/n1: label nvidia.com/mig.capable=false
`},
		"by counts a GPU that nobody can be on": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1)
			wants(w, "2g.10gb", 3)
		}, `
MIGLayoutMismatch possible n1: does not offer 3 × 2g.10gb, though nobody can be on 1 of its GPUs
  Node/n1: 2 GPUs with MIG by its labels; pods hold 1 instance, 15 memory slices of all GPUs together are unheld
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
  Node/n1: no NodeGeometry, so positions are unknown
`},
		"by counts nothing is sure": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 2)
			wants(w, "2g.10gb", 1)
		}, `
MIGLayoutMismatch possible n1: does not offer 2g.10gb
  Node/n1: advertises nvidia.com/mig-1g.5gb=14
  Node/n1: no NodeGeometry, so positions are unknown
`},
		"by counts too few slices of all": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 7)
			wants(w, "2g.10gb", 1)
		}, `
MIGFull possible n1: not enough unheld slices for 2g.10gb
  Node/n1: 1 GPU with MIG by its labels; pods hold 7 instances, 1 memory slices of all GPUs together are unheld
  Node/n1: no NodeGeometry, so positions are unknown
`},
	}.run(t)
}
