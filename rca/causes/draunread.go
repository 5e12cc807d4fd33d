package causes

import (
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draUnread: the scheduler's code sees only what was read, so what it says of
// devices then proves nothing.
var draUnread = Rule{ID: diagnosis.Unknown, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != devices.Plugin || c.Claims == nil {
		return nil
	}
	kind, why := c.Claims.Unreadable()
	if kind == "" {
		return nil
	}
	if c.Unborn && c.Refused.Refuses().Kind == admission.UnnamedClaim { // there is no claim of which anything could be read
		return &finding{diagnosis.Proven, "", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "is not judged: its pods name no claim", diagnosis.That("metadata.name", "", diagnosis.Is, n.Name))}}
	}
	return &finding{diagnosis.Possible, kind + " objects could not be read, so its devices are not judged", []diagnosis.Evidence{
		diagnosis.Fact(c.podRef(), kind+": "+why, c.Cluster.OfPod(c.Pod, diagnosis.That("spec.resourceClaims", "", diagnosis.Exists, ""))...),
		diagnosis.Fact(n.Ref(), "is not judged", diagnosis.That("metadata.name", "", diagnosis.Is, n.Name))}}
}}
