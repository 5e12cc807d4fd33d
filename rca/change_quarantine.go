package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// quarantine keeps further pods from a node with a sick GPU until somebody has seen to
// it. It makes room for nobody, and says so.
func (n *nodeView) quarantine() change {
	ch := change{kind: QuarantineGPU, cause: GPUUnhealthy, manual: true, minutes: 1, risk: "medium",
		title:      fmt.Sprintf("quarantine %s: cordon it, and have %s seen to", n.Name, n.sickText()),
		node:       func(o *corev1.Node) { o.Spec.Unschedulable = true },
		untestable: "it keeps pods from a sick GPU and schedules none: this one waits until the hardware is mended"}
	ch.detail = func(ch *change) {
		ch.steps = []string{"cordon " + n.Name + " (pods on its healthy GPUs keep running)", "open a hardware ticket", "uncordon " + n.Name + " once the GPU is mended"}
		ch.commands = append([]string{"kubectl cordon " + n.Name}, n.ticket()...)
	}
	return ch
}

// sickText names the GPUs that the report calls unhealthy.
func (n *nodeView) sickText() string {
	var sick []string
	if n.geometry != nil {
		for _, g := range n.geometry.Report.GPUs {
			if !g.Healthy {
				sick = append(sick, fmt.Sprint(g.Index))
			}
		}
	}
	if len(sick) == 0 {
		return "its GPUs"
	}
	return "GPU " + strings.Join(sick, ",")
}

// ticket is what whoever mends the hardware asks for, as comments to copy.
func (n *nodeView) ticket() []string {
	out := []string{"# Hardware ticket: GPU unhealthy on node " + n.Name}
	note := func(format string, args ...any) { out = append(out, "# "+fmt.Sprintf(format, args...)) }
	if id := n.Status.NodeInfo.SystemUUID; id != "" {
		note("machine: system UUID %s", id)
	}
	if n.geometry != nil {
		for _, g := range n.geometry.Report.GPUs {
			if !g.Healthy {
				note("GPU %d: %s, %s, driver %s, unhealthy at %s", g.Index, g.Product, g.UUID, n.geometry.Report.DriverVersion, n.geometry.Report.ObservedAt.UTC().Format("2006-01-02 15:04 MST"))
			}
		}
	}
	for _, name := range sortedNames(n.Status.Capacity) {
		if isGPU(name) && n.capacity(name) > n.allocatable(name) {
			note("the device plugin offers %d of %d %s", n.allocatable(name), n.capacity(name), name)
		}
	}
	return append(out, "# attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh")
}
