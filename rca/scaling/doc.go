// Package scaling reads what autoscalers say and have: the cluster autoscaler's Events and
// its status, Karpenter's Events, NodePools and NodeClaims, and the codes with which clouds
// refuse machines. It quotes and sorts; what follows for a pod is not said here.
package scaling
