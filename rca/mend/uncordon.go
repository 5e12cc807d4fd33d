package mend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/upkeep"
	"github.com/unpend/unpend/rca/view"
)

// Uncordon opens a node again, with care; by is who has closed it for upkeep, nil where nothing says so.
func Uncordon(n *view.Node, by *upkeep.Closure) edit.Change {
	quarantined, first := n.Operation().Quarantined != "", "ask who cordoned it first"
	switch {
	case quarantined:
		first = "see first that its GPU is mended"
	case by != nil:
		first = by.See
	}
	ch := edit.Change{
		Kind: diagnosis.UncordonNode, Cause: diagnosis.NodeCordoned, Minutes: 1, Risk: diagnosis.MediumRisk,
		Title: "uncordon " + n.Name,
		Node: func(o *corev1.Node) {
			o.Spec.Unschedulable = false
			o.Spec.Taints = slices.DeleteFunc(slices.Clone(o.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		},
		Detail: func(ch *edit.Change) {
			ch.Steps = []string{"uncordon " + n.Name + " (" + first + ")"}
			if by != nil {
				ch.Commands = slices.Clone(by.Look)
			}
			ch.Commands = append(ch.Commands, "kubectl uncordon "+n.Name)
			ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: view.NodeTarget(n.Node), Relies: n.Relies()}}
		},
	}
	if quarantined {
		ch.Risk = diagnosis.HighRisk
		ch.Title += ", which unpend keeps closed for its sick GPU"
	} else if by != nil {
		ch.Title += ", which " + by.Who + " has closed"
		if by.Again {
			ch.Title += " and closes again when it goes on"
		}
	}
	return ch
}
