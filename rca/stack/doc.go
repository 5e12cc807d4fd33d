// Package stack tells, for one node whose machine has GPUs and which offers none, which link
// between the board and allocatable is the first that is broken: node feature discovery, the
// GPU Operator's labels, the driver, the container toolkit, the device plugin, its
// registration. It says in what state the link is, which object shows that, and what mends it.
//
// A link that is starting within its normal time is not broken, and what could not be read is
// not missing. What there is of each part is told by room parts.
//
// Sources: gpu-operator v26.7 (controllers/state_manager.go, assets), k8s-driver-manager
// v0.12, k8s-device-plugin v0.20 (chart, static manifest), node-feature-discovery v0.20,
// container-engine-accelerators.
package stack
