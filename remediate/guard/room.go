package guard

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// SameRoom names what two plans both want: the pods of one incident, a node that one changes
// or fills, or something that both write to or stop. Empty: they are nothing to each other.
func SameRoom(a, b *v1alpha1.Remediation) string {
	if a.Spec.Incident == b.Spec.Incident {
		return "incident " + a.Spec.Incident
	}
	nodes := map[string]bool{a.Spec.Node: a.Spec.Node != ""}
	for name := range nodesOf(a) {
		nodes[name] = true
	}
	for name := range nodesOf(b) {
		if nodes[name] {
			return "node " + name
		}
	}
	if nodes[b.Spec.Node] {
		return "node " + b.Spec.Node
	}
	objects := map[string]bool{}
	for _, t := range written(a) {
		objects[t.UID] = true
	}
	for _, t := range written(b) {
		if objects[t.UID] {
			return fmt.Sprintf("%s %s/%s", strings.ToLower(t.Kind), t.Namespace, t.Name)
		}
	}
	return ""
}

// written is all that a plan writes to, and the pods that stop by it.
func written(r *v1alpha1.Remediation) []diagnosis.Target {
	var out []diagnosis.Target
	for i := range r.Spec.Actions {
		a := &r.Spec.Actions[i]
		out = append(append(out, a.Targets()...), a.Stopped()...)
	}
	return out
}
