package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// labelled is the state that MIG manager wrote so long ago.
func labelled(value string, ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	const key = view.LabelMIGState
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Labels[key] = value
		at := metav1.NewTime(rcatest.Noon.Add(-ago))
		n.ManagedFields = append(n.ManagedFields,
			metav1.ManagedFieldsEntry{Manager: "other", Time: &metav1.Time{Time: rcatest.Noon}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:other":{}}}}`)},
			metav1.ManagedFieldsEntry{Manager: "nvidia-mig-manager", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)},
			metav1.ManagedFieldsEntry{Manager: "no time", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)})
	}
}

// asked is that somebody wrote the label of the layout so long ago.
func asked(ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-label", Time: &metav1.Time{Time: rcatest.Noon.Add(-ago)}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + view.LabelMIGConfig + `":{}}}}`)})
	}
}

// config adds the mig-parted config that is in force where nobody names another.
func (w *world) config(entries string) {
	w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "default-mig-parted-config"}, Data: map[string]string{"config.yaml": "version: v1\nmig-configs:\n" + entries}})
}

// What MIG manager was asked for, and what it says of that.
func TestMIGManager(t *testing.T) {
	const state = view.LabelMIGState
	wants := func(w *world) { w.pod("w", "", "nvidia.com/mig-2g.10gb", 1) }
	whole := sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}, Config: "all-2g.10gb"}
	rows{
		"a change within its time goes on": {func(w *world) {
			w.gpuNode(whole, labelled("pending", 6*time.Minute))
			wants(w)
		}, `
MIGConfigInProgress proven n1: its MIG layout is being changed now
  Node/n1: label nvidia.com/mig.config=all-2g.10gb, nvidia.com/mig.config.state=pending
`},
		"so does a reboot": {func(w *world) {
			w.gpuNode(whole, labelled("rebooting", 6*time.Minute))
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
			w.gpuNode(whole, labelled("pending", 6*time.Minute+time.Second), label("nvidia.com/gpu.deploy.device-plugin", view.Paused), label("nvidia.com/gpu.deploy.dcgm", "true"))
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
			w.gpuNode(whole, labelled("pending", time.Hour), labelled("pending", time.Minute))
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
MIGConfigFailed proven n1: MIG manager could not apply "all-2g.10gb", and no pod holds a GPU of it: what does may run on the host (DCGM, nvidia-persistenced, nvidia_drm)
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
			w.config("  other: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n")
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
			w.config("  much: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 3}}]\n")
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
			w.config("  much: [{devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 3}}, {devices: all, mig-enabled: false, mig-devices: {3g.20gb: 3}}, {device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 9}}]\n")
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
