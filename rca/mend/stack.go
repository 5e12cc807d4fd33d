package mend

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// Stack lists what mends the first broken link between a node's board and what it
// offers.
func Stack(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	f := c.Broken(n)
	if f == nil || f.Cause != cause {
		return nil
	}
	return mends(c, n, f, func(asked bool) (func(*corev1.Node), string) { return announced(c, n, asked) })
}

// Upgrade is what ends a driver's upgrade that keeps a node cordoned.
func Upgrade(c *edit.Workload, n *view.Node) []edit.Change {
	f := stack.Of(c.Cluster).Cordoned(n)
	if f == nil {
		return nil
	}
	return mends(c, n, f, func(asked bool) (func(*corev1.Node), string) {
		open := Uncordon(n, nil).Node
		if n.AdvertisesAny() {
			return open, ""
		}
		edit, unknown := announced(c, n, asked)
		if unknown != "" {
			return nil, unknown
		}
		return func(o *corev1.Node) { open(o); edit(o) }, ""
	})
}

// Configure has the device plugin read, or read as it is meant, what is written for it.
func Configure(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	s := stack.Of(c.Cluster)
	var out []edit.Change
	for _, m := range []*stack.Misread{s.Misread(n), s.Misnamed(n), s.LayoutUnread(n)} {
		if m != nil {
			out = append(out, mends(c, n, &stack.Finding{Cause: cause, Mends: []stack.Mend{m.Mend}}, nil)...)
		}
	}
	return out
}

// InstallMaker is for GPUs of a maker whose device plugin is known, and is not there; nil for other devices.
// Whether a machine has one nobody has looked for.
func InstallMaker(c *edit.Workload, name corev1.ResourceName) *edit.Change {
	node := "NODE"
	if all := c.Cluster.SortedNodes(); len(all) == 1 {
		node = all[0].Name
	}
	what, commands, known := stack.Install(name, node)
	if !known {
		return nil
	}
	ch := edit.LookAt(diagnosis.Unknown, fmt.Sprintf("install %s, which announces %s, where a machine has such a GPU", what, name), "nothing tells whether a machine has such a GPU",
		append(commands, "kubectl get nodes -o custom-columns=NAME:.metadata.name,OFFERS:.status.allocatable")...)
	return &ch
}

// mends are the changes that a finding's mends are; after is what the node offers once one
// of them has come to its end, or why nobody knows.
func mends(c *edit.Workload, n *view.Node, f *stack.Finding, after func(asked bool) (func(*corev1.Node), string)) []edit.Change {
	out := make([]edit.Change, 0, len(f.Mends))
	for _, m := range f.Mends {
		if m.Kind == diagnosis.RestartDevicePlugin {
			ch := RestartPlugin(c, n, f.Cause)
			if m.Unproven != "" {
				ch.Untestable = m.Unproven
			}
			if m.Offers != nil {
				ch.Node, ch.Untestable = offering(m.Offers), ""
			} else if m.Until != "" && after != nil {
				if node, unknown := after(false); unknown == "" {
					ch.Node, ch.Untestable = node, ""
				}
			}
			out = append(out, ch)
			continue
		}
		ch := edit.Change{Kind: m.Kind, Cause: f.Cause, Title: m.Title, Until: m.Until, Minutes: m.Minutes, Risk: m.Risk, Steps: m.Steps, Commands: m.Commands, Untestable: m.Unproven, Manual: true, Drained: m.Stops, StopsUnknown: m.StopsUnknown}
		if m.Kind == diagnosis.RebootNode || m.Reboots {
			ch.Drained = view.Drained(n)
		}
		if m.Kind == diagnosis.EvictPods {
			if !mayAllLeave(c, m.Victims) {
				continue
			}
			leave := edit.Evict(f.Cause, m.Victims)
			ch.Victims, ch.Detail, ch.Manual = leave.Victims, leave.Detail, false
		}
		if ch.Untestable == "" {
			ch.Node, ch.Untestable = after(m.Kind == diagnosis.Wait)
		}
		if ch.Untestable != "" {
			ch.Node, ch.Until = nil, ""
		}
		out = append(out, ch)
	}
	return out
}

func mayAllLeave(c *edit.Workload, pods []*corev1.Pod) bool {
	for _, p := range pods {
		if !c.MayLeave(p) {
			return false
		}
	}
	return true
}

// announced is the node once its device plugin has announced its GPUs, or why nobody can say
// what it offers then. Who waits for a node that is starting waits for as many as are asked.
func announced(c *edit.Workload, n *view.Node, asked bool) (edit func(*corev1.Node), unknown string) {
	offers := n.Offers()
	if len(offers) == 0 {
		count := n.Expected()
		for _, a := range c.Asks {
			switch {
			case a.Profile != "":
				return nil, fmt.Sprintf("nobody knows how the GPUs of %s are laid out before they are announced", n.Name)
			case strings.HasSuffix(string(a.Resource), view.SharedSuffix):
				return nil, fmt.Sprintf("nobody knows how the GPUs of %s are shared before they are announced", n.Name)
			case count == 0 && (asked || a.Count == 1 && hasOne(n)):
				count = a.Count
			}
		}
		if count == 0 {
			return nil, "nothing says how many GPUs " + n.Name + " has"
		}
		offers[view.WholeGPU] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return offering(offers), ""
}

// allDisabled is the operator's own name of the layout without MIG.
const allDisabled = "all-disabled"

// hasOne says whether the node's machine is known to have a GPU, and that nobody has asked for it in
// parts: its device plugin offers one at least, however many there are.
func hasOne(n *view.Node) bool {
	signs, config := n.Hardware(), n.Labels[view.LabelMIGConfig]
	return len(signs) > 0 && !signs[0].Meant && (config == "" || config == allDisabled)
}

// offering is the node once it has announced these devices.
func offering(devices corev1.ResourceList) func(*corev1.Node) {
	return func(o *corev1.Node) {
		for _, told := range []*corev1.ResourceList{&o.Status.Allocatable, &o.Status.Capacity} {
			if *told == nil { // its kubelet has not said anything yet
				*told = corev1.ResourceList{}
			}
			maps.Copy(*told, devices)
		}
	}
}
