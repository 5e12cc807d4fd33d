package causes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
)

// sharedResourceRenamed: the node offers the devices under the other of the two
// names, or under another of its maker's.
var sharedResourceRenamed = Rule{ID: diagnosis.SharedResourceRenamed, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if other := makers.OtherName(n, b.scarce); other != "" && offersNone(n, b.scarce) {
		return &finding{diagnosis.Proven, "offers " + string(other) + ", not " + string(b.scarce), []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "offers "+string(other)+" and no "+string(b.scarce),
			diagnosis.That(diagnosis.Allocatable, string(other), diagnosis.IsNot, "0"), diagnosis.That(diagnosis.Allocatable, string(b.scarce), diagnosis.Is, "0"))}}
	}
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
	f := &finding{diagnosis.Proven, "offers " + other + ", not " + r, []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "advertises "+n.Advertised(), n.Advertises()...)}}
	if f.beside(c.misread(n)); shared {
		f.beside(stack.Of(c.Cluster).Misnamed(n))
	}
	return f
}}
