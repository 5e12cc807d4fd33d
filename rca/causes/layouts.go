package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/view"
)

// Why a node's GPUs are not laid out as the pod needs them is read in a room of its own; each
// rule tells one reason.
var (
	migConfigStuck         = ofLayout(diagnosis.MIGConfigStuck, layouts.ConfigStuck)
	migConfigInProgress    = ofLayout(diagnosis.MIGConfigInProgress, layouts.ConfigInProgress)
	migConfigUnknown       = ofLayout(diagnosis.MIGConfigUnknown, layouts.ConfigUnknown)
	migConfigInvalidForGPU = ofLayout(diagnosis.MIGConfigInvalidForGPU, layouts.ConfigInvalidForGPU)
	migModePending         = ofLayout(diagnosis.MIGModePending, layouts.ModePending)
	migConfigFailed        = ofLayout(diagnosis.MIGConfigFailed, layouts.ConfigFailed)
	migLayoutLost          = ofLayout(diagnosis.MIGLayoutDrift, layouts.LayoutLost)
	migLayoutDrift         = ofLayout(diagnosis.MIGLayoutDrift, layouts.LayoutDrift)
	gpuNotMIGCapable       = ofLayout(diagnosis.GPUNotMIGCapable, layouts.NotCapable)
	migStrategyMismatch    = ofLayout(diagnosis.MIGStrategyMismatch, layouts.StrategyMismatch)
	migProfileUnsupported  = ofLayout(diagnosis.MIGProfileUnsupported, layouts.ProfileUnsupported)
	migInstancesInUse      = ofLayout(diagnosis.MIGInstancesInUse, layouts.InstancesInUse)
	migLayoutMismatch      = ofLayout(diagnosis.MIGLayoutMismatch, layouts.LayoutMismatch)
	migFragmented          = ofLayout(diagnosis.MIGFragmented, layouts.Fragmented)
	migFull                = ofLayout(diagnosis.MIGFull, layouts.Full)
)

func ofLayout(id diagnosis.CauseID, tell func(*view.Cluster, *view.Node, *layouts.Short) *view.Finding) Rule {
	return Rule{ID: id, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		return found(tell(c.Cluster, n, &b.Short))
	}}
}
