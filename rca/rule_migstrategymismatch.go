package rca

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mixesUnderSingle says that strategy single finds layouts that it cannot name: the
// device plugin runs and offers nothing (GPU feature discovery, internal/lm).
func (n *nodeView) mixesUnderSingle() bool {
	return n.manager().strategy == strategySingle && strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-MIG-INVALID")
}

// offersProfiles says whether the node offers instances of some profile.
func (n *nodeView) offersProfiles() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(n.Status.Allocatable)), func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), migPrefix) && n.allocatable(name) > 0
	})
}

// migStrategyMismatch: the name of the resource does not go with the strategy
// that names the node's devices.
var migStrategyMismatch = Rule{ID: MIGStrategyMismatch, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	strategy := n.manager().strategy
	fact := func() []Evidence {
		return []Evidence{{n.ref(), fmt.Sprintf("label %s=%s, advertises %s", labelMIGStrategy, strategy, n.advertised())}}
	}
	if _, ok := b.mig(); ok && strategy == "single" && b.allocatable == 0 {
		return &finding{Proven, "strategy single offers MIG devices as nvidia.com/gpu", fact()}
	}
	if _, ok := b.whole(); !ok || b.allocatable > 0 {
		return nil
	}
	if n.mixesUnderSingle() {
		return &finding{Proven, "strategy single meets mixed layouts, so nothing is offered", fact()}
	}
	if strategy == "mixed" && len(n.gpus) > 0 && n.geometry != nil && len(n.gpus) == len(n.geometry.Report.GPUs) {
		return &finding{Proven, "every GPU is partitioned, strategy mixed offers nvidia.com/mig-*", fact()}
	}
	if strategy == "mixed" && n.geometry == nil && b.capacity == 0 && n.offersProfiles() {
		return &finding{Likely, "its GPUs are partitioned, strategy mixed offers nvidia.com/mig-*", fact()}
	}
	return nil
}}
