package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/view"
)

func offers(name string, count int64) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Status.Allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
		n.Status.Capacity[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
}

// offersNothing is a node whose device plugin went away, for less or for more than the
// time after which the kubelet forgets the capacity too.
func offersNothing(forgotten bool) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		for name := range n.Status.Allocatable {
			if view.IsGPU(name) {
				n.Status.Allocatable[name] = resource.Quantity{}
				if forgotten {
					n.Status.Capacity[name] = resource.Quantity{}
				}
			}
		}
	}
}

// What the node offers against what its GPUs have.
func TestMIGOffers(t *testing.T) {
	twos := sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "2g.10gb")}, Config: "own"}
	rows{
		"instances that are not advertised have drifted": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, `
MIGLayoutDrift proven n1: its GPUs have 2g.10gb that the node does not advertise
  NodeGeometry/n1: 3 instances of 2g.10gb exist
  Node/n1: capacity nvidia.com/mig-2g.10gb=1
`},
		"instances of an applied layout that are gone have drifted": {func(w *world) {
			w.config("  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n  other: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 1, 1g.5gb: 1}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutDrift proven n1: mig.config "mine" was applied, its GPUs are laid out otherwise
  Node/n1: label nvidia.com/mig.config=mine, nvidia.com/mig.config.state=success makes 3 of 2g.10gb
  NodeGeometry/n1: 0 instances of 2g.10gb exist
`},
		"one that MIG manager has not acted on was never there": {func(w *world) {
			w.config("  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}}, labelled("success", time.Hour), asked(20*time.Minute))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutDrift proven n1: mig.config "mine" is asked for since 11:40 UTC, and MIG manager has not acted on it: its success is of the layout before
  Node/n1: label nvidia.com/mig.config=mine was written at 2026-11-20 11:40 UTC, after nvidia.com/mig.config.state=success
  NodeGeometry/n1: 0 instances of 2g.10gb exist
`},
		"a moment ago it could not act yet": {func(w *world) {
			w.config("  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}}, labelled("success", time.Hour), asked(time.Minute))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGConfigInProgress likely n1: mig.config "mine" was asked for a moment ago, and MIG manager is about to begin
  Node/n1: label nvidia.com/mig.config=mine was written at 2026-11-20 11:59:00 UTC, after nvidia.com/mig.config.state=success
`},
		"what it said since is of the layout": {func(w *world) {
			w.config("  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}}, labelled("success", time.Minute), asked(20*time.Minute))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutDrift proven n1: mig.config "mine" was applied, its GPUs are laid out otherwise
  Node/n1: label nvidia.com/mig.config=mine, nvidia.com/mig.config.state=success makes 3 of 2g.10gb
  NodeGeometry/n1: 0 instances of 2g.10gb exist
`},
		"a layout that was not applied has not drifted": {func(w *world) {
			w.config("  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}}, label(view.LabelMIGState, "ready"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is 1g.5gb@0
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"counts of shared instances do not compare": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1), label("nvidia.com/mig-2g.10gb.replicas", "2"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is 2g.10gb@0 2g.10gb@2 2g.10gb@4
  Node/n1: allocatable nvidia.com/mig-2g.10gb=1, requested 0
`},
		"one share is none": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1), label("nvidia.com/mig-2g.10gb.replicas", "1"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, `
MIGLayoutDrift proven n1: its GPUs have 2g.10gb that the node does not advertise
  NodeGeometry/n1: 3 instances of 2g.10gb exist
  Node/n1: capacity nvidia.com/mig-2g.10gb=1
`},
		"strategy single names instances as GPUs": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Strategy: "single", Layouts: [][]sim.Placed{sim.All(a100, "2g.10gb")}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGStrategyMismatch proven n1: strategy single offers MIG devices as nvidia.com/gpu
  Node/n1: label nvidia.com/mig.strategy=single, advertises nvidia.com/gpu=3
`},
		"strategy single cannot name mixed layouts": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Strategy: "single", Layouts: [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}, {Profile: "1g.5gb", Start: 2}}}}, offersNothing(true), label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-INVALID"))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
MIGStrategyMismatch proven n1: strategy single meets mixed layouts, so nothing is offered
  Node/n1: label nvidia.com/mig.strategy=single, advertises nvidia.com/gpu=0
  Node/n1: label nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-INVALID
`},
		"strategy mixed offers no whole GPU of those that are partitioned": {func(w *world) {
			w.gpuNode(twos)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
MIGStrategyMismatch proven n1: every GPU is partitioned, strategy mixed offers nvidia.com/mig-*
  Node/n1: label nvidia.com/mig.strategy=mixed, advertises nvidia.com/mig-2g.10gb=3
`},
		"by what it offers they are likely partitioned": {func(w *world) {
			w.unreported(twos)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
MIGStrategyMismatch likely n1: its GPUs are partitioned, strategy mixed offers nvidia.com/mig-*
  Node/n1: label nvidia.com/mig.strategy=mixed, advertises nvidia.com/mig-2g.10gb=3
`},
		"a GPU that is whole is held, not partitioned": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0}, Layouts: [][]sim.Placed{nil, sim.All(a100, "2g.10gb")}})
			w.holds(w.pod("h", "n1", "nvidia.com/gpu", 1), 0)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"a plugin that offers nothing is down": {func(w *world) {
			w.gpuNode(twos, offersNothing(false), func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.GPUs = append(geo.Report.GPUs, nodeprobe.GPU{Index: 1, UUID: "whole", Healthy: true}, nodeprobe.GPU{Index: 2, UUID: "sick"})
			})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
DevicePluginDown proven n1: has GPUs and offers none
  NodeGeometry/n1: 3 GPUs
  Node/n1: allocatable: nvidia.com/mig-2g.10gb=0
  Node/n1: no DaemonSet of the cluster is NVIDIA's device plugin
`},
		"a plugin with nothing to offer is not": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100}, offers("nvidia.com/mig-2g.10gb", 0))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is empty
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"without a report the label says that there are GPUs": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4", GPUs: 2}, offersNothing(false))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
DevicePluginDown possible n1: has GPUs and offers none
  Node/n1: label nvidia.com/gpu.count=2
  Node/n1: allocatable: nvidia.com/gpu=0
  Node/n1: no DaemonSet of the cluster is NVIDIA's device plugin
`},
		"and that there are none": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4"}, offersNothing(true), label(view.LabelGPUCount, "0"))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
Unknown possible n1: not settled: Insufficient nvidia.com/gpu
  Node/n1: NodeResourcesFit: Insufficient nvidia.com/gpu
`},
		"a name without shares where shares are offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"}, offers("nvidia.com/gpu", 0), offers("nvidia.com/gpu.shared", 4))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
SharedResourceRenamed proven n1: offers nvidia.com/gpu.shared, not nvidia.com/gpu
  Node/n1: advertises nvidia.com/gpu.shared=4 nvidia.com/gpu=0
`},
		"a name with shares where none are offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"})
			w.pod("w", "", "nvidia.com/gpu.shared", 1)
		}, `
SharedResourceRenamed proven n1: offers nvidia.com/gpu, not nvidia.com/gpu.shared
  Node/n1: advertises nvidia.com/gpu=1
`},
	}.run(t)
}
