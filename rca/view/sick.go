package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
)

// ward is what a node has of one GPU resource, in devices, where some are on a GPU that its
// report calls unhealthy.
type ward struct {
	all, sick int64
	// free are the sick ones that nobody is known to hold; those of the others are by pod.
	free    int64
	holders map[diagnosis.PodName]int64
}

// SickGPUs are the GPUs that the node's report calls unhealthy.
func (n *Node) SickGPUs() []nodeprobe.GPU {
	if !n.ailing {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Reported()), func(g nodeprobe.GPU) bool { return !sick(g) })
}

// sick says that a report calls the GPU unhealthy.
func sick(g nodeprobe.GPU) bool { return !g.Healthy && !g.Untold }

// SickText names the GPUs that the node's report calls unhealthy, as "GPU 0,2"; empty
// where there is none.
func (n *Node) SickText() string {
	var sick []string
	for _, g := range n.SickGPUs() {
		sick = append(sick, strconv.Itoa(g.Index))
	}
	if len(sick) == 0 {
		return ""
	}
	return "GPU " + strings.Join(sick, ",")
}

// SickFacts is the evidence of them, a GPU each.
func (n *Node) SickFacts() []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, g := range n.SickGPUs() {
		out = append(out, diagnosis.Fact(n.ReportRef(), fmt.Sprintf("GPU %d (%s) is unhealthy", g.Index, g.UUID), OfGPU(g.Index, ".healthy", diagnosis.Is, "false"), OfGPU(g.Index, ".uuid", diagnosis.Is, g.UUID)))
	}
	return out
}

// wardOf counts the devices that stand behind a resource; nil where none is sick.
func (n *Node) wardOf(name corev1.ResourceName) *ward {
	if n.wards == nil {
		n.wards = n.tend()
	}
	return n.wards[corev1.ResourceName(strings.TrimSuffix(string(name), SharedSuffix))]
}

func (n *Node) tend() map[corev1.ResourceName]*ward {
	out := map[corev1.ResourceName]*ward{}
	device := func(name corev1.ResourceName, healthy bool, holders []nodeprobe.Holder) {
		w := out[name]
		if w == nil {
			w = &ward{holders: map[diagnosis.PodName]int64{}}
			out[name] = w
		}
		if w.all++; healthy {
			return
		}
		w.sick++
		known := n.HoldersKnown && len(holders) > 0
		for _, h := range holders {
			known = known && !h.Unknown && h.Pod != ""
		}
		if !known {
			w.free++
			return
		}
		for _, h := range holders {
			w.holders[diagnosis.PodName{Namespace: h.Namespace, Name: h.Pod}]++
		}
	}
	for _, g := range n.Reported() {
		if g.MIG == nil || !g.MIG.Current {
			device(WholeGPU, g.Healthy, g.Holders)
			continue
		}
		for _, in := range g.Instances {
			var holders []nodeprobe.Holder
			if in.Holder != nil {
				holders = []nodeprobe.Holder{*in.Holder}
			}
			device(resourceOf(n, in), g.Healthy, holders)
		}
	}
	for name, w := range out {
		if w.sick == 0 {
			delete(out, name)
		}
	}
	return out
}

// resourceOf is the resource as which the device plugin offers an instance.
func resourceOf(n *Node, in nodeprobe.Instance) corev1.ResourceName {
	if n.Labels[LabelMIGStrategy] == StrategySingle {
		return WholeGPU
	}
	return corev1.ResourceName(MIGPrefix + Spelled(in.Profile))
}

// Withheld is how much of a resource is not room, although the scheduler would give it
// out once these pods have left: devices of sick GPUs that the device plugin has not
// withdrawn, and all that is unheld where the report makes no sense.
func (n *Node) Withheld(name corev1.ResourceName, leaving ...*corev1.Pod) int64 {
	if !n.ailing && !n.Unreadable || !IsGPU(name) {
		return 0
	}
	if n.Unreadable {
		requested := n.Requested[name]
		left := n.Allocatable(name) - requested.Value()
		for _, p := range leaving {
			if q, here := n.Requests[p][name]; here {
				left += q.Value()
			}
		}
		return max(0, left)
	}
	w := n.wardOf(name)
	if w == nil {
		return 0
	}
	unheld := w.free
	for _, p := range leaving {
		unheld += w.holders[diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}]
	}
	return min(w.unnoticed(n, name), unheld*w.replicas(n, name))
}

// unnoticed is how many devices of sick GPUs the device plugin still offers.
func (w *ward) unnoticed(n *Node, name corev1.ResourceName) int64 {
	return max(0, n.Allocatable(name)-(w.all-w.sick)*w.replicas(n, name))
}

// replicas is as how many a device is offered: more than one where it is shared.
func (w *ward) replicas(n *Node, name corev1.ResourceName) int64 {
	return max(1, n.Capacity(name)/w.all)
}

// barren is how much of what a pod holds would be nobody's room once it has left: what is
// on sick GPUs that the device plugin still offers, and all of it where the report makes
// no sense.
func (n *Node) barren(p *corev1.Pod, name corev1.ResourceName) int64 {
	if !n.ailing && !n.Unreadable || !IsGPU(name) {
		return 0
	}
	if n.Unreadable {
		q := n.Requests[p][name]
		return q.Value()
	}
	w := n.wardOf(name)
	if w == nil || w.unnoticed(n, name) == 0 {
		return 0
	}
	return w.holders[diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}]
}

// Sound is the node for a copy of the cluster on which a fix is tried: once these pods
// have left it offers nothing that is no room, and nobody comes to it while unpend, or
// somebody else, has it. The node itself where that makes no difference.
func (n *Node) Sound(leaving []*corev1.Pod) *corev1.Node {
	out, taken := n.Node, n.Taken() != ""
	copied := false
	change := func() {
		if !copied {
			out, copied = n.DeepCopy(), true
		}
	}
	if taken && !n.Spec.Unschedulable {
		change()
		out.Spec.Unschedulable = true
	}
	for name, q := range n.Status.Allocatable {
		if less := n.Withheld(name, leaving...); less > 0 {
			change()
			out.Status.Allocatable[name] = *resource.NewQuantity(max(0, q.Value()-less), resource.DecimalSI)
		}
	}
	return out
}

// Unsound are the nodes that the scheduler takes for more than they are: those whose Sound
// may be another.
func (w *Cluster) Unsound() []*Node {
	if w.unsound == nil {
		w.unsound = []*Node{}
		for _, n := range w.SortedNodes() {
			if n.ailing || n.Unreadable || n.Taken() != "" {
				w.unsound = append(w.unsound, n)
			}
		}
	}
	return w.unsound
}
