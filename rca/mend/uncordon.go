package mend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Uncordon opens a node again, with care.
func Uncordon(n *view.Node) edit.Change {
	quarantined, first := n.Operation().Quarantined != "", "ask who cordoned it first"
	if quarantined {
		first = "see first that its GPU is mended"
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
			ch.Commands = []string{"kubectl uncordon " + n.Name}
			ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: view.NodeTarget(n.Node), Relies: n.Relies()}}
		},
	}
	if quarantined {
		ch.Risk = diagnosis.HighRisk
		ch.Title += ", which unpend keeps closed for its sick GPU"
	}
	return ch
}
