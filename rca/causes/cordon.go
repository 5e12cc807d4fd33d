package causes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/upkeep"
	"github.com/unpend/unpend/rca/view"
)

// nodeCordoned also claims the taint that the node controller adds to a cordoned
// node, where it is the only one: to uncordon a node that is not ready opens nothing.
var nodeCordoned = Rule{ID: diagnosis.NodeCordoned, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "NodeUnschedulable" && b.Plugin != "TaintToleration" || !n.Spec.Unschedulable || b.Plugin == "TaintToleration" && c.notReady(n) != nil {
		return nil
	}
	var fact strings.Builder
	fact.WriteString("spec.unschedulable is true")
	claims := []diagnosis.Claim{diagnosis.That("spec.unschedulable", "", diagnosis.Is, "true")}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			fact.WriteString(" since " + diagnosis.Clock(t.TimeAdded.Time))
			claims = append(claims, diagnosis.That(diagnosis.Taints+"[key="+t.Key+"].timeAdded", "", diagnosis.Is, t.TimeAdded.UTC().Format(time.RFC3339)))
		}
	}
	if why := n.Operation().Quarantined; why != "" {
		fact.WriteString(", kept so by unpend: " + why)
	} else if why := n.Taken(); why != "" {
		fact.WriteString(", " + why)
	} else if u := upkeep.Of(c.Cluster, n); u != nil {
		evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact.String(), claims...), u.Evidence}
		return &finding{diagnosis.Proven, "cordoned: " + u.Says, evidence}
	} else if who := cordonedBy(n.Node); who != "" {
		fact.WriteString(", set by " + who)
		claims = append(claims, diagnosis.That("metadata.managedFields", "manager="+who, diagnosis.Exists, ""))
	}
	return &finding{diagnosis.Proven, "cordoned", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact.String(), claims...)}}
}}

// cordonedBy names the field manager that last wrote the spec, the nearest thing
// to a person that the object holds.
func cordonedBy(n *corev1.Node) string {
	for _, m := range n.ManagedFields {
		if m.Subresource == "" && (m.Manager == "kubectl-cordon" || m.Manager == "kubectl-drain") {
			return m.Manager
		}
	}
	return ""
}
