//go:build tools

// Package kwok pins the simulated kubelet that tests run on.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
