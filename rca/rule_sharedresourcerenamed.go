package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SharedSuffix is what the device plugin adds with renameByDefault
// (k8s-device-plugin, sharing configuration).
const SharedSuffix = ".shared"

// sharedResourceRenamed: the node offers the devices under the other of the two
// names.
var sharedResourceRenamed = Rule{ID: SharedResourceRenamed, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if b.allocatable > 0 || !isGPU(b.short) {
		return nil
	}
	r := string(b.short)
	other, shared := strings.CutSuffix(r, SharedSuffix)
	if !shared && !n.read().shared {
		return nil
	}
	if !shared {
		other += SharedSuffix
	}
	if n.allocatable(corev1.ResourceName(other)) == 0 {
		return nil
	}
	return &finding{Proven, "offers " + other + ", not " + r, []Evidence{{n.ref(), fmt.Sprintf("advertises %s", n.advertised())}}}
}}
