package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// NodeFacts are the facts about a node that a plan for it rests on, in the words
// of Action.Relies, to be held against it before a write. The state has to hold
// the node, the pods bound to it and its report; nil when the node is not there.
func NodeFacts(st *cluster.State, name string) map[string]string {
	for _, n := range st.Nodes {
		if n.Name == name {
			v := &Node{Node: n}
			v.readGeometry(st, name)
			return v.Relies()
		}
	}
	return nil
}

// Relies are the facts about a node that a plan for it rests on: its cordon, its
// taints (that of the cordon left out), what MIG manager was asked and says, what
// it advertises, and for each GPU the layout and the holders.
func (n *Node) Relies() map[string]string {
	var taints []string
	for _, t := range n.Spec.Taints {
		if t.Key != corev1.TaintNodeUnschedulable {
			taints = append(taints, t.ToString())
		}
	}
	slices.Sort(taints)
	out := map[string]string{
		"unschedulable": fmt.Sprint(n.Spec.Unschedulable),
		"taints":        strings.Join(taints, " "),
		"mig":           n.Labels[LabelMIGConfig] + " " + n.Labels[LabelMIGState] + " " + n.Labels[LabelMIGStrategy],
		"allocatable":   n.Advertised(),
	}
	n.reliesOnWhole(out)
	for _, g := range n.SickGPUs() { // a fact that a plan for a healthy node has not: it is stale once a GPU is sick
		out[fmt.Sprintf("gpu%d/health", g.Index)] = "unhealthy"
	}
	for _, g := range n.GPUs {
		out[fmt.Sprintf("gpu%d", g.Index)] = LayoutText(g)
		for _, s := range g.Slots {
			switch {
			case s.Unknown:
				out[diagnosis.HolderPrefix(g.Index)+fmt.Sprint(s.Start)] = diagnosis.UnknownHolder
			case s.Held:
				out[diagnosis.HolderPrefix(g.Index)+fmt.Sprint(s.Start)] = s.Holder.Namespace + "/" + s.Holder.Pod
			}
		}
	}
	return out
}

// reliesOnWhole adds the GPUs that are not partitioned.
func (n *Node) reliesOnWhole(out map[string]string) {
	if n.Geometry == nil {
		return
	}
	for _, g := range n.Geometry.Report.GPUs {
		if g.MIG != nil && g.MIG.Current {
			continue
		}
		out[fmt.Sprintf("gpu%d", g.Index)] = "whole"
		for i, h := range g.Holders {
			out[diagnosis.HolderPrefix(g.Index)+fmt.Sprint(i)] = h.Namespace + "/" + h.Pod
			if h.Unknown || !n.HoldersKnown {
				out[diagnosis.HolderPrefix(g.Index)+fmt.Sprint(i)] = diagnosis.UnknownHolder
			}
		}
	}
}
