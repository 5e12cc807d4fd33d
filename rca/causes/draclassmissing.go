package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// draClassMissing: a request names a DeviceClass that nobody made.
var draClassMissing = Rule{ID: diagnosis.DRAClassMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRAClassMissing {
		return nil
	}
	gone := c.Claims.Classless()
	f := &finding{Certainty: diagnosis.Proven, Says: "DeviceClass " + gone[0].Class + " does not exist"}
	for _, a := range gone {
		f.Evidence = append(f.Evidence, diagnosis.Fact(a.Ref, "request "+a.Name+" names DeviceClass "+a.Class, a.Claims()...), diagnosis.Fact("DeviceClass/"+a.Class, "does not exist", diagnosis.That("", "", diagnosis.Absent, "")))
	}
	if dra := c.DRAClass(gone[0].Class); dra != nil {
		f.Says += ": " + dra.Says
		f.Evidence = append(f.Evidence, about(gone[0].Class, dra))
	}
	return f
}}

// DRAClass is why a class that NVIDIA's driver brings with it does not exist; nil for one
// that is not its own, and where the driver is not seen to be at fault.
func (c *Case) DRAClass(class string) *stack.DRA {
	if class != "gpu.nvidia.com" && class != "mig.nvidia.com" {
		return nil
	}
	return stack.Of(c.Cluster).DRADriver("gpu.nvidia.com", nil)
}
