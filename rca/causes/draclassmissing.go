package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draClassMissing: a request names a DeviceClass that nobody made.
var draClassMissing = Rule{ID: diagnosis.DRAClassMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRAClassMissing {
		return nil
	}
	gone := c.Claims.Classless()
	f := &finding{certainty: diagnosis.Proven, says: "DeviceClass " + gone[0].Class + " does not exist"}
	for _, a := range gone {
		f.evidence = append(f.evidence, diagnosis.Evidence{Ref: a.Ref, Fact: "request " + a.Name + " names DeviceClass " + a.Class}, diagnosis.Evidence{Ref: "DeviceClass/" + a.Class, Fact: "does not exist"})
	}
	return f
}}
