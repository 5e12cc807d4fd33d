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
		}, ``},
		"of two GPUs the first with a position is named, and both give room": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "7g.40gb"), sim.All(a100, "1g.5gb")}, Config: "own"})
			w.holds(w.pod("h", "n1", "nvidia.com/mig-7g.40gb", 1), 0, 0)
			wants(w, "2g.10gb", 3)
		}, ``},
		"more than the GPUs have room for is no matter of the layout": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "2g.10gb", 4)
		}, ``},
		"a GPU with MIG off that nobody holds could be partitioned": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, MIGOff: []int{0}})
			wants(w, "2g.10gb", 1)
		}, ``},
		"one that is held cannot, and what other GPUs have is full": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0}, Layouts: [][]sim.Placed{nil, sim.All(a100, "7g.40gb")}, Config: "own"})
			w.holds(w.pod("h", "n1", "nvidia.com/gpu", 1), 0)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-7g.40gb", 1), 1, 0)
			wants(w, "2g.10gb", 1)
		}, ``},
		"enough slices without a legal start are fragmented": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 1)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 5)
			wants(w, "3g.20gb", 1)
		}, ``},
		"too few slices are full": {func(w *world) {
			w.gpuNode(laidOut(sim.Placed{Profile: "4g.20gb", Start: 0}, sim.Placed{Profile: "2g.10gb", Start: 4}, sim.Placed{Profile: "1g.5gb", Start: 6}))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-4g.20gb", 1), 0, 0)
			w.holds(w.pod("g", "n1", "nvidia.com/mig-2g.10gb", 1), 0, 4)
			wants(w, "3g.20gb", 1)
		}, ``},
		"instances that exist and are held are in use, whatever else there is": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "3g.20gb")...))
			for i, start := range []int{0, 4} {
				w.holds(w.pod([]string{"g", "h"}[i], "n1", "nvidia.com/mig-3g.20gb", 1), 0, start)
			}
			wants(w, "3g.20gb", 1)
		}, ``},
		"more instances than the node has are a matter of the layout": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 0}}, {{Profile: "3g.20gb", Start: 0}}}, Config: "own"})
			wants(w, "3g.20gb", 3)
		}, ``},
		"a report that is old proves nothing of holders": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...), func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
			})
			wants(w, "2g.10gb", 1)
		}, ``},
		"a profile that the model has not, with the nearest": {func(w *world) {
			w.gpuNode(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "1g.12gb", 1)
		}, ``},
		"by its label a model is only likely to be what it is": {func(w *world) {
			w.unreported(laidOut(sim.All(a100, "1g.5gb")...))
			wants(w, "9g.90gb", 1)
		}, ``},
		"a model without MIG, by its report": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"})
			wants(w, "1g.5gb", 1)
		}, ``},
		"a model without MIG, by its label": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4"})
			wants(w, "1g.5gb", 1)
		}, ``},
		"by counts a GPU that nobody can be on": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1)
			wants(w, "2g.10gb", 3)
		}, ``},
		"by counts nothing is sure": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 2)
			wants(w, "2g.10gb", 1)
		}, ``},
		"by counts too few slices of all": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 7)
			wants(w, "2g.10gb", 1)
		}, ``},
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
		}, ``},
		"so does a reboot": {func(w *world) {
			w.gpuNode(whole, labelled(state, "rebooting", 6*time.Minute))
			wants(w)
		}, ``},
		"a change that nobody knows the start of goes on perhaps": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"))
			wants(w)
		}, ``},
		"past its time it is stuck": {func(w *world) {
			w.gpuNode(whole, labelled(state, "pending", 6*time.Minute+time.Second), label("nvidia.com/gpu.deploy.device-plugin", view.Paused), label("nvidia.com/gpu.deploy.dcgm", "true"))
			wants(w)
		}, ``},
		"with all capacity gone it is stuck likely": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"), offersNothing(true))
			wants(w)
		}, ``},
		"with some capacity left it goes on": {func(w *world) {
			w.gpuNode(whole, label(state, "pending"), offersNothing(false))
			wants(w)
		}, ``},
		"a former time than the last does not count": {func(w *world) {
			w.gpuNode(whole, labelled(state, "pending", time.Hour), labelled(state, "pending", time.Minute))
			wants(w)
		}, ``},
		"a change that failed names who runs there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			w.pod("cpu", "n1", "", 0)
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 0)
			wants(w)
		}, ``},
		"several run there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			w.holds(w.pod("g", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 1)
			w.holds(w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 1), 0, 0)
			wants(w)
		}, ``},
		"nobody runs there": {func(w *world) {
			w.gpuNode(whole, label(state, "failed"))
			wants(w)
		}, ``},
		"a failure is in nobody's way where the request is offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}}}}, label(state, "failed"))
			w.holds(w.pod("h", "n1", "nvidia.com/mig-2g.10gb", 1), 0, 0)
			wants(w)
		}, ``},
		"a name that its config does not have": {func(w *world) {
			w.config("default-mig-parted-config", "  other: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n")
			w.gpuNode(whole)
			wants(w)
		}, ``},
		"a config that was not read proves nothing": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}, Config: "nobody-knows"})
			wants(w)
		}, ``},
		"an entry that has no positions": {func(w *world) {
			w.config("default-mig-parted-config", "  much: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 3}}]\n")
			n := whole
			n.Config = "much"
			w.gpuNode(n)
			wants(w)
		}, ``},
		"an entry for other GPUs, for none, or of another model is in nobody's way": {func(w *world) {
			w.config("default-mig-parted-config", "  much: [{devices: [1], mig-enabled: true, mig-devices: {3g.20gb: 3}}, {devices: all, mig-enabled: false, mig-devices: {3g.20gb: 3}}, {device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 9}}]\n")
			n := whole
			n.Config = "much"
			w.gpuNode(n)
			wants(w)
		}, ``},
		"a mode waits for a reset": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0, 1}}, func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) { geo.Report.GPUs[1].MIG.Pending = true })
			wants(w)
		}, ``},
		"a mode that goes off waits too": {func(w *world) {
			w.gpuNode(whole, func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) { geo.Report.GPUs[0].MIG.Pending = false })
			wants(w)
		}, ``},
	}.run(t)
}

// What the node offers against what its GPUs have.
func TestMIGOffers(t *testing.T) {
	twos := sim.Node{Name: "n1", Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "2g.10gb")}, Config: "own"}
	rows{
		"instances that are not advertised have drifted": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, ``},
		"instances of an applied layout that are gone have drifted": {func(w *world) {
			w.config("default-mig-parted-config", "  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n  other: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 1, 1g.5gb: 1}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, ``},
		"a layout that was not applied has not drifted": {func(w *world) {
			w.config("default-mig-parted-config", "  mine: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Config: "mine", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}}}}, label(view.LabelMIGState, "ready"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, ``},
		"counts of shared instances do not compare": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1), label("nvidia.com/mig-2g.10gb.replicas", "2"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, ``},
		"one share is none": {func(w *world) {
			w.gpuNode(twos, offers("nvidia.com/mig-2g.10gb", 1), label("nvidia.com/mig-2g.10gb.replicas", "1"))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 2)
		}, ``},
		"strategy single names instances as GPUs": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Strategy: "single", Layouts: [][]sim.Placed{sim.All(a100, "2g.10gb")}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, ``},
		"strategy single cannot name mixed layouts": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, Strategy: "single", Layouts: [][]sim.Placed{{{Profile: "2g.10gb", Start: 0}, {Profile: "1g.5gb", Start: 2}}}}, offersNothing(true), label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-INVALID"))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"strategy mixed offers no whole GPU of those that are partitioned": {func(w *world) {
			w.gpuNode(twos)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"by what it offers they are likely partitioned": {func(w *world) {
			w.unreported(twos)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"a GPU that is whole is held, not partitioned": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100, GPUs: 2, MIGOff: []int{0}, Layouts: [][]sim.Placed{nil, sim.All(a100, "2g.10gb")}})
			w.holds(w.pod("h", "n1", "nvidia.com/gpu", 1), 0)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"a plugin that offers nothing is down": {func(w *world) {
			w.gpuNode(twos, offersNothing(false), func(_ *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.GPUs = append(geo.Report.GPUs, nodeprobe.GPU{Index: 1, UUID: "whole", Healthy: true}, nodeprobe.GPU{Index: 2, UUID: "sick"})
			})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, ``},
		"a plugin with nothing to offer is not": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: a100}, offers("nvidia.com/mig-2g.10gb", 0))
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, ``},
		"without a report the label says that there are GPUs": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4", GPUs: 2}, offersNothing(false))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"and that there are none": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: "L4"}, offersNothing(true), label(view.LabelGPUCount, "0"))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"a name without shares where shares are offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"}, offers("nvidia.com/gpu", 0), offers("nvidia.com/gpu.shared", 4))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, ``},
		"a name with shares where none are offered": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4"})
			w.pod("w", "", "nvidia.com/gpu.shared", 1)
		}, ``},
	}.run(t)
}
