package causes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// sharedResourceRenamed: the node offers the devices under the other of the two
// names.
var sharedResourceRenamed = Rule{ID: diagnosis.SharedResourceRenamed, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	if b.Allocatable > 0 || !view.IsGPU(b.scarce) {
		return nil
	}
	r := string(b.scarce)
	other, shared := strings.CutSuffix(r, view.SharedSuffix)
	if !shared && !n.Facts().Shared {
		return nil
	}
	if !shared {
		other += view.SharedSuffix
	}
	if n.Allocatable(corev1.ResourceName(other)) == 0 {
		return nil
	}
	return &finding{diagnosis.Proven, "offers " + other + ", not " + r, []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "advertises "+n.Advertised(), n.Advertises()...)}}
}}
