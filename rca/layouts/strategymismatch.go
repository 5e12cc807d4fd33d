package layouts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// MixesUnderSingle says that strategy single finds GPUs that it cannot name: the
// device plugin runs or ends and offers nothing (GPU feature discovery, internal/lm).
func MixesUnderSingle(n *view.Node) bool {
	return n.Manager().Strategy == view.StrategySingle && strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-MIG-INVALID")
}

// OffersProfiles says whether the node offers instances of some profile.
func OffersProfiles(n *view.Node) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(n.Status.Allocatable)), func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), view.MIGPrefix) && n.Allocatable(name) > 0
	})
}

// StrategyMismatch tells: the name of the resource does not go with the strategy
// that names the node's devices.
func StrategyMismatch(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	strategy := n.Manager().Strategy
	fact := func() []diagnosis.Evidence {
		return []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, advertises %s", view.LabelMIGStrategy, strategy, n.Advertised()), append(n.Labelled(view.LabelMIGStrategy), n.Advertises()...)...)}
	}
	if _, ok := s.MIG(); ok && MixesUnderSingle(n) {
		says, evidence := Unnamed(n)
		return view.Found(diagnosis.Proven, says+", so nothing is offered, and would name no profile", append(fact(), evidence...)...)
	}
	if _, ok := s.MIG(); ok && strategy == "single" && s.Allocatable == 0 {
		return view.Found(diagnosis.Proven, "strategy single offers MIG devices as nvidia.com/gpu", fact()...)
	}
	if _, ok := s.Whole(); !ok || s.Allocatable > 0 {
		return nil
	}
	if MixesUnderSingle(n) {
		says, evidence := Unnamed(n)
		return view.Found(diagnosis.Proven, says+", so nothing is offered", append(fact(), evidence...)...)
	}
	if strategy == "mixed" && len(n.GPUs) > 0 && n.Geometry != nil && len(n.GPUs) == len(n.Geometry.Report.GPUs) {
		return view.Found(diagnosis.Proven, "every GPU is partitioned, strategy mixed offers nvidia.com/mig-*", fact()...)
	}
	if strategy == "mixed" && n.Geometry == nil && s.Capacity == 0 && OffersProfiles(n) {
		return view.Found(diagnosis.Likely, "its GPUs are partitioned, strategy mixed offers nvidia.com/mig-*", fact()...)
	}
	return nil
}
