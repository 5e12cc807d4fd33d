package rca

import (
	"fmt"
	"strings"
)

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
	if strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-MIG-INVALID") {
		return &finding{Proven, "strategy single meets mixed layouts, so nothing is offered", fact()}
	}
	if strategy == "mixed" && len(n.gpus) > 0 && n.geometry != nil && len(n.gpus) == len(n.geometry.Report.GPUs) {
		return &finding{Proven, "every GPU is partitioned, strategy mixed offers nvidia.com/mig-*", fact()}
	}
	return nil
}}
