package changes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

func (c *Bench) addNode() []Change {
	return []Change{{Kind: diagnosis.ScaleNodePool, Manual: true, Risk: diagnosis.LowRisk, Title: "add a node with such GPUs to the cluster", Untestable: "the node is not there yet",
		Commands: []string{"kubectl get nodes", "# then scale a node pool with the cloud's or the autoscaler's own command"}}}
}

// waitForAutoscaler leaves the node that it brings to it.
func (c *Bench) waitForAutoscaler() Change {
	return Change{Kind: diagnosis.Wait, Cause: diagnosis.ScalingUp, Manual: true, Risk: diagnosis.NoRisk, Minutes: max(1, 5-int(c.PromiseAge().Minutes())), Until: "the autoscaler's node is Ready", Title: "wait for the node that the autoscaler brings",
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name), "kubectl get nodes -w"}}
}

// lookAtPromise is for the node that was promised and did not come.
func (c *Bench) lookAtPromise() Change {
	return Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.ScaleUpStuck, Manual: true, Risk: diagnosis.NoRisk, Title: "see why the promised node did not come", Untestable: "the node is not there yet",
		Commands: []string{"kubectl get nodeclaims -o wide  # Karpenter's", "kubectl -n default get events --field-selector involvedObject.kind=NodeClaim", "kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml", "kubectl get nodes --sort-by=.metadata.creationTimestamp  # a new one without GPUs: its driver or device plugin"}}
}

// growPool is for the autoscaler that may not grow any pool by itself.
func (c *Bench) growPool() Change {
	return Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.AutoscalerCannotHelp, Manual: true, Risk: diagnosis.LowRisk, Title: "let a node pool with such GPUs grow, or add one", Untestable: "the node is not there yet",
		Commands: []string{"kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml", "# then raise the maximum of a node pool with the cloud's own command"}}
}
