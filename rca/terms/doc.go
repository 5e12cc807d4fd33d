// Package terms reads what a pod demands of the place that it goes to: labels and names of
// nodes, taints that it tolerates, pods that it has to be near or apart from, volumes. Of each
// it says what a node does not meet, with what shows it, and what comes nearest. It judges as
// the scheduler's plugins do, from objects; that a plugin refuses a node, rca/causes knows.
package terms

// mostNamed bounds the pods that are named as evidence for one node.
const mostNamed = 8
