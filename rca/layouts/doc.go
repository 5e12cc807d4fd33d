// Package layouts tells why a node's GPUs are not laid out as a pod needs them: what MIG
// manager was told, whether it has done it, what is there instead, and whether another layout
// would have room. Each function tells one such reason, or nil: it reads the cluster, the node
// and what the node is Short of, and knows nothing else of the pod. In which order they are
// asked, and which cause they are, rca/causes says; which layout to have instead, rca/relayout.
package layouts
