//go:build tools

// Package kube pins the Kubernetes control plane that tests run on. Nothing is
// imported from it: its binaries are built by the support package.
package kube

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
