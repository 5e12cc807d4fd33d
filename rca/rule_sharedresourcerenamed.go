package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/whatif"
)

// SharedSuffix is what the device plugin adds with renameByDefault
// (k8s-device-plugin, sharing configuration).
const SharedSuffix = ".shared"

// sharedResourceRenamed: the node offers the devices under the other of the two
// names.
var sharedResourceRenamed = Rule{ID: SharedResourceRenamed, Tell: func(_ *Case, n *nodeView, b whatif.Blocker) *finding {
	r, ok := insufficient(b)
	if !ok || !isGPU(corev1.ResourceName(r)) || n.allocatable(corev1.ResourceName(r)) > 0 {
		return nil
	}
	other, shared := strings.CutSuffix(r, SharedSuffix)
	if !shared {
		other += SharedSuffix
	}
	if n.allocatable(corev1.ResourceName(other)) == 0 {
		return nil
	}
	return &finding{Proven, "offers " + other + ", not " + r, []Evidence{{n.ref(), fmt.Sprintf("advertises %s", n.advertised())}}}
}}
