package causes

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// AllUnhealthy is a resource beside GPUs that the pod asks, and that nodes have by their capacity, where none offers any:
// a device plugin has announced devices and calls all of them unhealthy, or has gone (pkg/kubelet/cm/devicemanager,
// GetCapacity). Empty for none.
func AllUnhealthy(c *Case) corev1.ResourceName {
	if g := c.Growth(); c.Unborn || c.Claims != nil || len(c.Verdict.Feasible()) > 0 || len(g.Pools)+len(g.Groups) > 0 || g.Said != "" {
		return "" // a node that has one may come
	}
	for _, name := range view.SortedNames(c.Wants) {
		if q := c.Wants[name]; !q.IsZero() && strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), "nvidia.com/") && stack.Maker(name) == "" && unhealthyAt(c, name) != nil {
			return name
		}
	}
	return ""
}

// unhealthyAt is a node that has the resource and offers none of it; nil where none has, or one offers some.
func unhealthyAt(c *Case, name corev1.ResourceName) *view.Node {
	var found *view.Node
	for _, n := range c.Cluster.SortedNodes() {
		has := n.Status.Capacity[name]
		switch {
		case !offersNone(n, name):
			return nil
		case has.Sign() > 0 && found == nil:
			found = n
		}
	}
	return found
}

// allUnhealthy has no cause of its own in the catalogue, and yet it is settled: no node can take the pod before the
// device plugin calls one of them healthy.
var allUnhealthy = PodRule{ID: diagnosis.Unknown, Tell: func(c *Case) *finding {
	name := AllUnhealthy(c)
	if name == "" {
		return nil
	}
	n := unhealthyAt(c, name)
	capacity, text := n.Status.Capacity[name], string(name)
	has := strconv.FormatInt(capacity.Value(), 10)
	c.entitle(diagnosis.Unknown, "no "+text+" is healthy")
	f := &finding{diagnosis.Proven, fmt.Sprintf("no node offers %s: they have it by their capacity (%s: %s), and their device plugin calls all of it unhealthy, or has gone", name, n.Name, has), []diagnosis.Evidence{
		diagnosis.Fact(c.podRef(), "asks "+text, c.itAsks(name)...),
		diagnosis.Fact(n.Ref(), fmt.Sprintf("capacity %s=%s, allocatable 0", name, has), diagnosis.That(diagnosis.Capacity, text, diagnosis.Is, has), diagnosis.That(diagnosis.Allocatable, text, diagnosis.Is, "0").Of("Node/*"))}}
	if a := AnnouncerOf(c, name); a != nil {
		f.Says, f.Evidence = f.Says+"; "+a.Says(), append(f.Evidence, a.evidence...)
	}
	return f
}}
