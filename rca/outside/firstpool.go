package outside

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// firstPool is for a Karpenter that has no NodePool: it says what one for the pod has to be like.
func firstPool(c *edit.Workload) edit.Change {
	title := "make Karpenter a NodePool of machines for " + c.WorkloadName() + ": it has none"
	var wants []string
	for _, key := range slices.Sorted(maps.Keys(c.Pod.Spec.NodeSelector)) {
		if strings.HasPrefix(key, "karpenter.") {
			wants = append(wants, fmt.Sprintf("{key: %s, operator: In, values: [%q]}", key, c.Pod.Spec.NodeSelector[key]))
		}
	}
	commands := []string{"kubectl get nodepools,nodeclaims"}
	class := "a node class of the cloud (EC2NodeClass, AKSNodeClass, GCENodeClass), which is to be Ready"
	k := c.Cluster.State.NodeClasses
	if all := slices.Concat(k.AWS, k.AutoMode, k.Azure, k.Google); len(all) > 0 {
		class = fmt.Sprintf("%s %s", all[0].GetKind(), all[0].GetName())
	}
	says := "kubectl apply -f FILE  # a NodePool (karpenter.sh/v1): spec.template.spec.nodeClassRef names " + class
	if len(wants) > 0 {
		says += "; requirements: " + strings.Join(wants, ", ")
	}
	commands = append(commands, says+"; spec.limits", "kubectl -n "+c.Pod.Namespace+" get pod "+c.Pod.Name+" -w")
	return Growing(diagnosis.AutoscalerCannotHelp, title, commands...)
}
