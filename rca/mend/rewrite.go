package mend

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/view"
)

// RewriteConfig is for a ConfigMap that ClusterPolicy names, and in which MIG manager can read no entry: it has no
// other, whatever the label says.
func RewriteConfig(c *edit.Workload, n *view.Node) []edit.Change {
	wrong, of := layouts.WrongMap(c.Cluster, n), c.Cluster.ConfigOf(n).Source
	if wrong == nil {
		return nil
	}
	return []edit.Change{{Kind: diagnosis.FixMIGConfig, Cause: diagnosis.MIGConfigUnknown, Manual: true, Minutes: 5, Risk: diagnosis.LowRisk,
		Title:      fmt.Sprintf("write ConfigMap %s/%s as MIG manager reads it, then have it try again on %s: it %s", of.Namespace, of.Name, n.Name, wrong.Says),
		Untestable: "what MIG manager makes of it no copy can show",
		Steps:      []string{"write key config.yaml of the ConfigMap: version: v1 at the top, and the entries below mig-configs:", "have MIG manager try again"},
		Commands: append([]string{fmt.Sprintf("kubectl -n %s edit configmap %s  # data: {config.yaml: |  version: v1, then mig-configs:, and below that, two spaces in, the entries: %s is one}", of.Namespace, of.Name, n.Labels[view.LabelMIGConfig])},
			append(tryAgain(n), fmt.Sprintf("kubectl get node %s -L %s,%s -w", n.Name, view.LabelMIGConfig, view.LabelMIGState))...)}}
}
