package causes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// fewerThanItsMachine: the node announces fewer GPUs than its machine has, which would do: one has fallen off the bus, or its driver
// does not know it, before the device plugin has begun, so that it was never counted.
var fewerThanItsMachine = Rule{ID: diagnosis.GPUUnhealthy, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.Whole()
	if !ok || b.Capacity == 0 || b.Capacity >= a.Count || inParts(n) {
		return nil
	}
	has, sign := terms.GPUsOfMachine(n)
	if has < a.Count {
		return nil
	}
	c.entitle(diagnosis.GPUUnhealthy, "a GPU of the machine is missing")
	return &finding{diagnosis.Likely, "announces fewer GPUs than its machine has: not all were found when its device plugin began", append([]diagnosis.Evidence{sign,
		diagnosis.Fact(n.Ref(), fmt.Sprintf("capacity %s=%d", a.Resource, b.Capacity), diagnosis.That(diagnosis.Capacity, string(a.Resource), diagnosis.Is, strconv.FormatInt(b.Capacity, 10)))}, stack.Ailing(n)...)}
}}

// inParts says whether GPUs of the node are, or may be, in MIG mode: those are announced by other names.
func inParts(n *view.Node) bool {
	if config := n.Labels[view.LabelMIGConfig]; config != "" && config != "all-disabled" {
		return true
	}
	for name := range n.Status.Capacity {
		if strings.HasPrefix(string(name), view.MIGPrefix) {
			return true
		}
	}
	return n.Geometry != nil // which tells by itself what there is
}
