package causes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// The causes behind a node that has GPUs and offers none: each is told of the first link
// that is broken between its board and what it offers.
var (
	gpuStackMissing      = brokenLink(diagnosis.GPUStackMissing)
	gpuStackNotOnNode    = brokenLink(diagnosis.GPUStackNotOnNode)
	driverNotReady       = brokenLink(diagnosis.DriverNotReady)
	runtimeNotConfigured = brokenLink(diagnosis.RuntimeNotConfigured)
	devicePluginDown     = brokenLink(diagnosis.DevicePluginDown)
)

// OfStack says whether a cause is one of them.
func OfStack(id diagnosis.CauseID) bool {
	switch id {
	case gpuStackMissing.ID, gpuStackNotOnNode.ID, driverNotReady.ID, runtimeNotConfigured.ID, devicePluginDown.ID:
		return true
	}
	return false
}

// HasAsked says whether a node has GPUs, of the maker whose are asked, whether it offers them or not; false where none are asked.
func HasAsked(c *Case, on diagnosis.NodeBlockers) bool {
	n := c.Node(on.Name)
	if slices.ContainsFunc(on.Blockers, func(b diagnosis.Blocker) bool { return OfStack(b.Cause) }) {
		return true
	}
	if len(c.Asks) > 0 {
		return n.HasGPUs() || c.Broken(n) != nil
	}
	for name := range c.Wants {
		if stack.Maker(name) != "" && n.Allocatable(name) > 0 {
			return true
		}
	}
	return false
}

// brokenLink is the rule of one of them: of GPUs that the node has too few of, of NVIDIA's or
// of another maker's.
func brokenLink(id diagnosis.CauseID) Rule {
	return Rule{ID: id, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if !b.gpu && stack.Maker(b.scarce) == "" {
			return nil
		}
		f := c.Broken(n)
		if f == nil || f.Cause != id || f.Unready {
			return nil
		}
		certainty := f.Certainty
		if f.State == stack.Unseen && id == diagnosis.DevicePluginDown && reportsDevices(n) {
			certainty = n.Certainty() // its report shows what it does not offer
		}
		return &finding{certainty, f.Says, f.Evidence}
	}}
}

// offersNoneUnready: the part of the stack that is missing waits to be started by a kubelet that is not Ready: what the GPUs
// lack beside that shows only once it is. So is what MIG manager has not made.
var offersNoneUnready = Rule{ID: diagnosis.NodeNotReady, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if !b.gpu && stack.Maker(b.scarce) == "" {
		return nil
	}
	f, why := c.Broken(n), unready(n)
	if why == nil || (f == nil || !f.Unready) && !layouts.Left(c.Cluster, n) {
		return nil
	}
	return &finding{diagnosis.Proven, "", []diagnosis.Evidence{*why}}
}}

// unready is the evidence that a node's kubelet does not call it Ready; nil where it does, or nothing says so.
func unready(n *view.Node) *diagnosis.Evidence {
	for _, k := range n.Status.Conditions {
		if k.Type == corev1.NodeReady && k.Status != corev1.ConditionTrue {
			return new(diagnosis.Fact(n.Ref(), "Ready is "+string(k.Status), diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, string(k.Status))))
		}
	}
	return nil
}

// Those of a cluster in which nothing says of any node whether it has a GPU, though a device plugin
// is there that would find out if it were let.
var (
	gpuStackUnseen = untold(diagnosis.GPUStackMissing)
	gpuStackUntold = untold(diagnosis.GPUStackNotOnNode)
	runtimeUntold  = untold(diagnosis.RuntimeNotConfigured)
	pluginUntold   = untold(diagnosis.DevicePluginDown)
)

func untold(id diagnosis.CauseID) Rule {
	return Rule{ID: id, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if !b.asked || n.HasGPUs() {
			return nil
		}
		f := c.Broken(n)
		if f == nil || f.Cause != id {
			return nil
		}
		return &finding{f.Certainty, f.Says, f.Evidence}
	}}
}

// Broken is the first broken link of a node; nil where none is, or where it offers nothing
// because there is nothing to offer.
func (c *Case) Broken(n *view.Node) *stack.Finding {
	if name := c.ofMaker(); name != "" {
		return stack.Of(c.Cluster).OfMaker(n, name)
	}
	if !n.HasGPUs() {
		return stack.Of(c.Cluster).Untold(n)
	}
	if n.AdvertisesAny() || layouts.MixesUnderSingle(n) || reported(n) && devicesSeen(n) == 0 {
		return nil // sick GPUs, or GPUs in MIG mode without instances
	}
	return stack.Of(c.Cluster).On(n)
}

// ofMaker is what the pod asks of the GPUs of another maker than NVIDIA; empty where it asks
// for none.
func (c *Case) ofMaker() corev1.ResourceName {
	for _, name := range view.SortedNames(c.Wants) {
		if stack.Maker(name) != "" {
			return name
		}
	}
	return ""
}

// driverUpgrading: the driver's upgrade keeps the node cordoned.
var driverUpgrading = Rule{ID: diagnosis.DriverNotReady, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "NodeUnschedulable" && b.Plugin != "TaintToleration" || b.Plugin == "TaintToleration" && c.notReady(n) != nil {
		return nil
	}
	f := stack.Of(c.Cluster).Cordoned(n)
	if f == nil {
		return nil
	}
	return &finding{f.Certainty, f.Says, f.Evidence}
}}

// reported says whether the driver tells a probe of the node's GPUs.
func reported(n *view.Node) bool {
	return n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceNVML
}

func reportsDevices(n *view.Node) bool { return reported(n) && devicesSeen(n) > 0 }

// devicesSeen counts what the device plugin would offer: instances, and GPUs without
// MIG, as far as they are healthy.
func devicesSeen(n *view.Node) int {
	count := 0
	for _, g := range n.Geometry.Report.GPUs {
		switch {
		case !g.Healthy:
		case g.MIG != nil && g.MIG.Current:
			count += len(g.Instances)
		default:
			count++
		}
	}
	return count
}

// AskRuntime says whether pods of the device plugin ask for a RuntimeClass.
func AskRuntime(w *view.Cluster) bool { return stack.AskRuntime(w) }
