package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

const a100 = "A100-40GB"

// laidOut is a node of one A100 with instances, of which pods may hold some.
func laidOut(placed ...sim.Placed) sim.Node {
	return sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{placed}, Config: "own"}
}

func label(key, value string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[key] = value }
}

// labelled is a label that was written so long ago.
func labelled(key, value string, ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Labels[key] = value
		at := metav1.NewTime(rcatest.Noon.Add(-ago))
		n.ManagedFields = append(n.ManagedFields,
			metav1.ManagedFieldsEntry{Manager: "other", Time: &metav1.Time{Time: rcatest.Noon}, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:other":{}}}}`)}},
			metav1.ManagedFieldsEntry{Manager: "nvidia-mig-manager", Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)}},
			metav1.ManagedFieldsEntry{Manager: "no time", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)}})
	}
}

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

func (w *world) config(name, entries string) {
	w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name}, Data: map[string]string{"config.yaml": "version: v1\nmig-configs:\n" + entries}})
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
  NodeGeometry/n1: at most 1 memory slices of one GPU are unheld
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
  Node/n1: 2 GPUs with MIG by its labels; pods hold 1 instances, 15 memory slices of all GPUs together are unheld
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
  Node/n1: 1 GPUs with MIG by its labels; pods hold 7 instances, 1 memory slices of all GPUs together are unheld
  Node/n1: no NodeGeometry, so positions are unknown
`},
	}.run(t)
}

// What MIG manager was asked for, and what it says of that.
func TestMIGManager(t *testing.T) {
	const state = view.LabelMIGState
	wants := func(w *world) { w.pod("w", "", "nvidia.com/mig-2g.10gb", 1) }
	whole := sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}, Config: "all-2g.10gb"}
	rows{
		"a change within its time goes on": {func(w *world) {
			w.gpuNode(whole, labelled(state, "pending", 6*time.Minute))
			wants(w)
		}, `
MIGConfigInProgress proven n1: its MIG layout is being changed now
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=pending
`},
		"so does a reboot": {func(w *world) {
			w.gpuNode(whole, labelled(state, "rebooting", 6*time.Minute))
			wants(w)
		}, `
MIGConfigInProgress proven n1: its MIG layout is being changed now
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=rebooting
`},
		"a change that nobody knows the start of goes on perhaps": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"))
			wants(w)
		}, `
MIGConfigInProgress possible n1: its MIG layout is being changed
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=pending
`},
		"past its time it is stuck": {func(w *world) {
			w.gpuNode(whole, labelled(state, "pending", 6*time.Minute+time.Second), label("nvidia.com/gpu.deploy.device-plugin", view.Paused), label("nvidia.com/gpu.deploy.dcgm", "true"))
			wants(w)
		}, `
MIGConfigStuck proven n1: MIG manager is stuck
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, pending since 11:53 UTC
  Node/n1: nvidia.com/gpu.deploy.device-plugin=paused-for-mig-change
`},
		"with all capacity gone it is stuck likely": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"), offersNothing(true))
			wants(w)
		}, `
MIGConfigStuck likely n1: MIG manager is stuck
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, pending, and capacity is gone, which takes 5m0s
`},
		"with some capacity left it goes on": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"), offersNothing(false))
			wants(w)
		}, `
MIGConfigInProgress possible n1: its MIG layout is being changed
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=pending
`},
		"a former time than the last does not count": {func(w *world) {
			w.gpuNode(whole, labelled(state, "pending", time.Hour), labelled(state, "pending", time.Minute))
			wants(w)
		}, `
MIGConfigInProgress proven n1: its MIG layout is being changed now
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=pending
`},
		"a change that failed names who runs there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			w.pod("cpu", "n1", "", 0)
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 0)
			wants(w)
		}, `
MIGConfigFailed proven n1: MIG manager could not apply "all-2g.10gb", ml/h still runs on its GPUs
  Node/n1: label nvidia.com/mig.config.state=failed for nvidia.com/mig.config=all-2g.10gb
  Pod/ml/h: still runs on a GPU of the node
`},
		"several run there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			w.holds(w.pod("g", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 1)
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 0)
			wants(w)
		}, `
MIGConfigFailed proven n1: MIG manager could not apply "all-2g.10gb", 2 pods (ml/g, …) still run on its GPUs
  Node/n1: label nvidia.com/mig.config.state=failed for nvidia.com/mig.config=all-2g.10gb
  Pod/ml/g: still runs on a GPU of the node
  Pod/ml/h: still runs on a GPU of the node
`},
		"nobody runs there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			wants(w)
		}, `
MIGConfigFailed proven n1: MIG manager could not apply "all-2g.10gb"
  Node/n1: label nvidia.com/mig.config.state=failed for nvidia.com/mig.config=all-2g.10gb
`},
		"a failure is in nobody's way where the request is offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}}}}, label(state, "failed"))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-2g.10gb", 1), 0, 0)
			wants(w)
		}, `
MIGInstancesInUse proven n1: its 2g.10gb instances are all held
  Node/n1: allocatable nvidia.com/mig-2g.10gb=1, requested 1
`},
		"a name that its config does not have": {func(w *world) {
			w.config("default-mig-parted-config", "  other: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n")
			w.gpuNode(whole)
			wants(w)
		}, `
MIGConfigUnknown proven n1: mig.config "all-2g.10gb" names no entry of its config
  Node/n1: label nvidia.com/mig.config=all-2g.10gb
  ConfigMap/gpu-operator/default-mig-parted-config: has no such entry
`},
		"a config that was not read proves nothing": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}, Config: "nobody-knows"})
			wants(w)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"an entry that has no positions": {func(w *world) {
			w.config("default-mig-parted-config", "  much: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 3}}]\n")
			n := whole
			n.Config = "much"
			w.gpuNode(n)
			wants(w)
		}, `
MIGConfigInvalidForGPU proven n1: mig.config "much" cannot exist on NVIDIA A100-SXM4-40GB
  ConfigMap/gpu-operator/default-mig-parted-config: entry much wants 3×3g.20gb
  NodeGeometry/n1: GPU 0 has no legal positions for that
`},
		"an entry for other GPUs, for none, or of another model is in nobody's way": {func(w *world) {
			w.config("default-mig-parted-config", "  much: [{devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 3}}, {devices: all, mig-enabled: false, mig-devices: {3g.20gb: 3}}, {device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 9}}]\n")
			n := whole
			n.Config = "much"
			w.gpuNode(n)
			wants(w)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is 1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
		"a mode waits for a reset": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0, 1}}, func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) { geo.Report.GPUs[1].MIG.Pending = true })
			wants(w)
		}, `
MIGModePending proven n1: its MIG mode waits for a GPU reset or a reboot
  NodeGeometry/n1: GPU 1: MIG mode is off, on after a reset
`},
		"a mode that goes off waits too": {func(w *world) {
			w.gpuNode(whole, func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) { geo.Report.GPUs[0].MIG.Pending = false })
			wants(w)
		}, `
MIGModePending proven n1: its MIG mode waits for a GPU reset or a reboot
  NodeGeometry/n1: GPU 0: MIG mode is on, off after a reset
`},
	}.run(t)
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
			w.config("default-mig-parted-config", "  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n  other: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 1, 1g.5gb: 1}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutDrift proven n1: mig.config "mine" was applied, its GPUs are laid out otherwise
  Node/n1: label nvidia.com/mig.config=mine, nvidia.com/mig.config.state=success makes 3 of 2g.10gb
  NodeGeometry/n1: 0 instances of 2g.10gb exist
`},
		"a layout that was not applied has not drifted": {func(w *world) {
			w.config("default-mig-parted-config", "  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
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
  Node/n1: allocatable: nvidia.com/mig-2g.10gb=0
  NodeGeometry/n1: 4 devices exist
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
  Node/n1: allocatable: nvidia.com/gpu=0
  Node/n1: label nvidia.com/gpu.count=2
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
