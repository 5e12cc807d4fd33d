package rca

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// quarantine keeps further pods from a node with a sick GPU until somebody has seen to
// it. It makes room for nobody, and says so.
func (n *nodeView) quarantine() change {
	ch := change{kind: QuarantineGPU, cause: GPUUnhealthy, minutes: 1, risk: MediumRisk,
		title:      fmt.Sprintf("quarantine %s: cordon it, and have %s seen to", n.Name, n.sickText()),
		node:       func(o *corev1.Node) { o.Spec.Unschedulable = true },
		untestable: "it keeps pods from a sick GPU and schedules none: this one waits until the hardware is mended"}
	ch.detail = func(ch *change) {
		ticket := n.ticket()
		ch.steps = []string{"cordon " + n.Name + " (pods on its healthy GPUs keep running)", "write the hardware ticket's text into an Event of the node (file it yourself)", "uncordon " + n.Name + " once the GPU is mended"}
		ch.commands = []string{"kubectl cordon " + n.Name}
		for _, line := range append(ticket, n.sickSince()...) {
			ch.commands = append(ch.commands, "# "+line)
		}
		// Who holds its healthy GPUs may come and go: nothing but the cordon is relied on.
		ch.actions = []Action{{Verb: VerbCordon, Target: nodeTarget(n.Node), Note: strings.Join(ticket, "\n"),
			Relies: map[string]string{"unschedulable": fmt.Sprint(n.Spec.Unschedulable)}}}
	}
	return ch
}

// sick are the GPUs that the report calls unhealthy.
func (n *nodeView) sick() []nodeprobe.GPU {
	if n.geometry == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.geometry.Report.GPUs), func(g nodeprobe.GPU) bool { return g.Healthy })
}

func (n *nodeView) sickText() string {
	var sick []string
	for _, g := range n.sick() {
		sick = append(sick, fmt.Sprint(g.Index))
	}
	if len(sick) == 0 {
		return "its GPUs"
	}
	return "GPU " + strings.Join(sick, ",")
}

// ticket is what whoever mends the hardware asks for, without times: it is part of the
// plan, which must not change with every report.
func (n *nodeView) ticket() []string {
	out := []string{"Hardware ticket: GPU unhealthy on node " + n.Name}
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if id := n.Status.NodeInfo.SystemUUID; id != "" {
		note("machine: system UUID %s", id)
	}
	for _, g := range n.sick() {
		note("GPU %d: %s, %s, driver %s, unhealthy", g.Index, g.Product, g.UUID, n.geometry.Report.DriverVersion)
	}
	for _, name := range sortedNames(n.Status.Capacity) {
		if isGPU(name) && n.capacity(name) > n.allocatable(name) {
			note("the device plugin offers %d of %d %s", n.allocatable(name), n.capacity(name), name)
		}
	}
	return append(out, "attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh")
}

// sickSince says when the report was made that calls GPUs unhealthy.
func (n *nodeView) sickSince() []string {
	if len(n.sick()) == 0 {
		return nil
	}
	return []string{"reported at " + n.geometry.Report.ObservedAt.UTC().Format("2006-01-02 15:04 MST")}
}
