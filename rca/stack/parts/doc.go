// Package parts knows what a cluster has of the parts of the stack between a GPU and a node's
// allocatable: which DaemonSets those are, which nodes they take, which pod a node has of each, and
// how that is.
//
// DaemonSets are known by what they run, not by their names alone, and are asked about the node at
// hand: their status never counts a node that they exclude.
//
// Sources: gpu-operator v26.7 (assets), k8s-device-plugin v0.20 (chart, static manifest),
// node-feature-discovery v0.20, container-engine-accelerators, kubernetes v1.36
// (pkg/controller/daemon).
package parts
