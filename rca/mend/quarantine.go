package mend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Quarantine keeps further pods from a node with a sick GPU until somebody has seen to
// it. It makes room for nobody, and says so.
func Quarantine(n *view.Node) edit.Change {
	ch := edit.Change{Kind: diagnosis.QuarantineGPU, Cause: diagnosis.GPUUnhealthy, Minutes: 1, Risk: diagnosis.MediumRisk,
		Title:      fmt.Sprintf("quarantine %s: cordon it, and have %s seen to", n.Name, SickText(n)),
		Node:       func(o *corev1.Node) { o.Spec.Unschedulable = true },
		Untestable: "it keeps pods from a sick GPU and schedules none: this pod waits until somebody mends the hardware"}
	ch.Detail = func(ch *edit.Change) {
		ticket := ticket(n)
		ch.Steps = []string{"cordon " + n.Name + " (pods that run there keep running)", "write the hardware ticket's text into an Event of the node (file it yourself)", "uncordon " + n.Name + " once the GPU is mended"}
		ch.Commands = []string{"kubectl cordon " + n.Name}
		for _, line := range append(ticket, sickSince(n)...) {
			ch.Commands = append(ch.Commands, "# "+line)
		}
		// Who holds its healthy GPUs may come and go: nothing but the cordon is relied on.
		ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbCordon, Target: view.NodeTarget(n.Node), Note: strings.Join(ticket, "\n"),
			Relies: map[string]string{"unschedulable": fmt.Sprint(n.Spec.Unschedulable)}}}
	}
	return ch
}

// SickText names the sick GPUs of a node, or says that they are some of them, or all, where nobody tells which.
func SickText(n *view.Node) string {
	of := "its GPUs"
	if has := n.StockOf(view.WholeGPU); 0 < has.Allocatable && has.Allocatable < has.Capacity {
		of = "the unhealthy ones of its GPUs"
	}
	return cmp.Or(n.SickText(), of)
}

// ticket is what a person who mends the hardware has to know. It holds no times: it is
// part of the plan, which must not change with every report.
func ticket(n *view.Node) []string {
	out := []string{"Hardware ticket: GPU unhealthy on node " + n.Name}
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if id := n.Status.NodeInfo.SystemUUID; id != "" {
		note("machine: system UUID %s", id)
	}
	for _, g := range n.SickGPUs() {
		note("GPU %d: %s, %s, driver %s, unhealthy", g.Index, g.Product, g.UUID, n.Geometry.Report.DriverVersion)
	}
	for _, name := range view.SortedNames(n.Status.Capacity) {
		if view.IsGPU(name) && n.Capacity(name) > n.Allocatable(name) {
			note("the device plugin offers %d of %d %s", n.Allocatable(name), n.Capacity(name), name)
		}
	}
	if !slices.ContainsFunc(view.SortedNames(n.Status.Capacity), view.IsGPU) {
		return append(out, "attach, from the node: dmesg, and what its maker's tool says of the devices")
	}
	return append(out, "attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh")
}

// sickSince says when the report was made that calls GPUs unhealthy.
func sickSince(n *view.Node) []string {
	if len(n.SickGPUs()) == 0 {
		return nil
	}
	return []string{"reported at " + diagnosis.Clock(n.Geometry.Report.ObservedAt.Time)}
}
