// Package kubelet tells why a kubelet does not begin a pod that has a node: what stands behind
// its refusal at admission, which NUMA zone had too little, which devices it could not have
// prepared. What it said is in the pod's status or an Event; which of its many reasons for the
// same words it was, the node and the pods on it tell.
package kubelet
