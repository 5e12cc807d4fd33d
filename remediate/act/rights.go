package act

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Repartition is the virtual verb on nodes that an approver needs for a plan that
// changes a node: people rightly have no right to patch nodes.
const Repartition = "repartition"

// right is something that the approver of a plan has to be allowed.
type right = authorizationv1.ResourceAttributes

// Rights are those that the approver of a plan has to have, each once: those that its
// writes take, and for a node, which the executor writes itself, the virtual verb.
func Rights(rem *v1alpha1.Remediation) []authorizationv1.ResourceAttributes {
	var out []right
	for _, v := range (&run{rem: rem}).verbsOf(rem.Spec.Actions) {
		for _, a := range v.rights() {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// OwnRights are those that a plan takes of who carries it out, not of its approver: nodes,
// and a team's layouts.
func OwnRights(rem *v1alpha1.Remediation) []authorizationv1.ResourceAttributes {
	var out []right
	for _, a := range rem.Spec.Actions {
		if a.Target.Kind == "Node" {
			out = append(out, right{Verb: "patch", Resource: "nodes", Name: a.Target.Name})
		}
		if a.Relayout != nil && a.Relayout.ConfigMap != nil {
			layouts := rightOn("update", *a.Relayout.ConfigMap)
			layouts.Name = a.Relayout.ConfigMap.Name
			out = append(out, layouts)
		}
	}
	return out
}

// repartition is the right to have the action's node changed.
func (a action) repartition() right {
	return right{Verb: Repartition, Resource: "nodes", Namespace: a.Target.Namespace, Name: a.Target.Name}
}

// evicts is the right to evict a pod.
func evicts(pod diagnosis.Target) right {
	return right{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: pod.Namespace}
}

// rightOn is the right to write to objects of a target's kind, in its namespace.
func rightOn(verb string, t diagnosis.Target) right {
	group, resource := "", strings.ToLower(t.Kind)+"s"
	switch t.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet":
		group = "apps"
	case "Job":
		group = "batch"
	}
	return right{Verb: verb, Group: group, Resource: resource, Namespace: t.Namespace}
}
