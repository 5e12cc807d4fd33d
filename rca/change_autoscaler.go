package rca

import "fmt"

func (c *Bench) addNode() []change {
	return []change{{kind: ScaleNodePool, manual: true, risk: LowRisk, title: "add a node with such GPUs to the cluster", untestable: "the node is not there yet",
		commands: []string{"kubectl get nodes", "# then scale a node pool with the cloud's or the autoscaler's own command"}}}
}

// waitForAutoscaler leaves the node that it brings to it.
func (c *Bench) waitForAutoscaler() change {
	return change{kind: Wait, cause: ScalingUp, manual: true, risk: NoRisk, minutes: 5, until: "the autoscaler's node is Ready", title: "wait for the node that the autoscaler brings",
		commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name), "kubectl get nodes -w"}}
}

// growPool is for the autoscaler that may not grow any pool by itself.
func (c *Bench) growPool() change {
	return change{kind: ScaleNodePool, cause: AutoscalerCannotHelp, manual: true, risk: LowRisk, title: "let a node pool with such GPUs grow, or add one", untestable: "the node is not there yet",
		commands: []string{"kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml", "# then raise the maximum of a node pool with the cloud's own command"}}
}
