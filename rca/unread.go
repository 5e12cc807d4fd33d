package rca

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// finding is what a caveat may bear on.
type finding struct {
	*causes.Case
	causes []diagnosis.Cause
	fixes  []diagnosis.Fix
}

// unreadFacts lists what could not be read and bears on the finding, with what it leaves
// open; what bears most comes first.
func unreadFacts(c *causes.Case, causes []diagnosis.Cause, fixes []diagnosis.Fix) []string {
	f, out := finding{c, causes, fixes}, []string{}
	for _, n := range c.Cluster.SortedNodes() {
		if n.Doubt != "" && len(c.Asks) > 0 {
			out = append(out, fmt.Sprintf("geometry of %s: %s; nothing there is read as free", n.Name, n.Doubt))
		}
	}
	measured := c.Unmeasured()
	if c.Cluster.Unmeasured != view.NoMeasure { // else nobody asked for it: what is missing comes first
		out, measured = append(measured, out...), nil
	}
	for _, open := range leavesOpen {
		if why := c.Cluster.State.Unread[open.kind]; why != "" && (open.bears == nil || open.bears(f)) {
			out = append(out, fmt.Sprintf("%s: %s; %s", open.kind, why, open.says))
		}
	}
	if groups := f.unreadGroups(); groups != "" {
		out = append(out, groups)
	}
	if c.Gang != nil && c.Gang.Unread() != "" {
		out = append(out, fmt.Sprintf("PodGroup.%s: %s; how many pods its gang takes is not known", c.Gang.Kind.API, c.Gang.Unread()))
	}
	if owner := f.unreadOwner(); owner != "" {
		out = append(out, owner)
	}
	return append(out, measured...)
}

// unreadOwner says where the walk from the pod to what made it ends at a kind that is not
// read: something may own that, and the incident would be that one's. Empty where it ends
// because there is no more.
func (f finding) unreadOwner() string {
	chain, lost := incident.Walk(f.Pod, f.Cluster.State.Owner)
	if lost == nil {
		return ""
	}
	why := f.Cluster.State.OwnerUnread(lost)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s; whether something owns %s, and what, is not known", chain[len(chain)-1].Kind, why, lost.Name)
}

// unreadGroups says that the cluster autoscaler, which has spoken of the pod, was not read on its groups: it may write
// of them under another name, or nobody may read that. Empty where it was, or where no group keeps the pod waiting.
func (f finding) unreadGroups() string {
	g := f.Growth()
	decides := g.OfTemplate != "" || g.Told(diagnosis.AutoscalerLimit) != nil || g.Told(diagnosis.AutoscalerCannotHelp) != nil
	if g.Karpenter || g.Said == "" || !decides || f.Cluster.Outlook().Status != nil {
		return ""
	}
	why := cmp.Or(f.Cluster.State.Unread[cluster.AutoscalerStatusKind], "none of that name was read")
	return fmt.Sprintf("%s: %s; which node groups the cluster autoscaler has, and how large they may be, is not known", cluster.AutoscalerStatusKind, why)
}

// leavesOpen says what a diagnosis lacks when a kind was not read, and of which it does;
// without bears of every one. What leaves most open comes first.
var leavesOpen = []struct {
	kind, says string
	bears      func(finding) bool
}{
	{"Node", "no node can be judged", nil},
	{"Pod", "use of the nodes is not known", nil},
	{"ResourceClaim", "whether its claims exist and who holds devices is not known", finding.claims},
	{"ResourceClaimTemplate", "templates of claims are not judged", finding.claims},
	{"ResourceSlice", "which devices exist is not known", finding.claims},
	{"DeviceClass", "which classes of devices exist is not known", finding.claims},
	{"DeviceTaintRule", "rules that taint devices are not judged", finding.taintable},
	{"EC2NodeClass", "why a NodePool's node class is not ready is not known", classes("EC2NodeClass")},
	{"AKSNodeClass", "why a NodePool's node class is not ready is not known", classes("AKSNodeClass")},
	{"NodeClass", "why a NodePool's node class is not ready is not known", classes("NodeClass")},
	{"GCENodeClass", "why a NodePool's node class is not ready is not known", classes("GCENodeClass")},
	{"DaemonSet", "whether a device plugin is installed and where it may run is not known", finding.stack},
	{cluster.PluginConfigKind, "how the device plugin is told to share GPUs is not known", finding.stack},
	{"RuntimeClass", "whether the one that the device plugin asks for exists is not known", finding.runtimes},
	{"ResourceQuota", "quotas that refuse its pods are not judged", finding.refused},
	{"LimitRange", "LimitRanges that default or refuse its pods are not judged", finding.refused},
	{"NodeGeometry", "positions of MIG instances are not known", finding.partitions},
	{"PodDisruptionBudget", "an eviction may be refused", finding.evicts},
	{"ConfigMap", "the names of MIG layouts are taken from what the operator generates", finding.layouts},
	{"ClusterPolicy", "only existing MIG layouts are offered", finding.layouts},
	{"PersistentVolumeClaim", "volumes are not judged", finding.volumes},
	{"Namespace", "namespace selectors are not judged", finding.neighbours},
}

func (f finding) claims() bool { return f.Claims != nil }

// taintable says whether rules of a living cluster may keep the claims from devices: few dumps
// hold that kind.
func (f finding) taintable() bool { return f.claims() && f.Cluster.State.Live }

// classes says of a kind of node classes whether one may be why a NodePool makes no machine.
func classes(kind string) func(finding) bool {
	return func(f finding) bool {
		return f.Growth().ShutBy(kind)
	}
}

// stack says whether GPUs are there that nobody offers.
func (f finding) stack() bool {
	return slices.ContainsFunc(f.causes, func(c diagnosis.Cause) bool {
		switch c.ID {
		case diagnosis.GPUStackMissing, diagnosis.GPUStackNotOnNode, diagnosis.DriverNotReady, diagnosis.RuntimeNotConfigured, diagnosis.DevicePluginDown:
			return true
		}
		return false
	})
}

// runtimes says whether a device plugin asks for a RuntimeClass that may be missing.
func (f finding) runtimes() bool { return f.stack() && causes.AskRuntime(f.Cluster) }

func (f finding) refused() bool { return len(f.Refused.All) > 0 }

// partitions says whether it matters how GPUs are partitioned.
func (f finding) partitions() bool {
	return f.layouts() || slices.ContainsFunc(f.Asks, func(a view.Ask) bool { return a.Profile != "" })
}

// layouts says whether another layout is, or might have been, a way out.
func (f finding) layouts() bool {
	ofMIG := func(c diagnosis.Cause) bool { return strings.HasPrefix(string(c.ID), "MIG") }
	remakes := func(f diagnosis.Fix) bool { return f.Mechanism == diagnosis.MIGManager }
	return len(f.Asks) > 0 && (slices.ContainsFunc(f.causes, ofMIG) || slices.ContainsFunc(f.fixes, remakes))
}

func (f finding) evicts() bool {
	return slices.ContainsFunc(f.fixes, func(f diagnosis.Fix) bool { return len(f.Cost.Evictions)+len(f.Cost.Restarts) > 0 })
}

func (f finding) volumes() bool {
	return slices.ContainsFunc(f.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// neighbours says whether the pod, or one that is there, keeps to or off pods of namespaces
// that a selector chooses.
func (f finding) neighbours() bool {
	return slices.ContainsFunc(append([]*corev1.Pod{f.Pod}, f.Cluster.State.Pods...), func(p *corev1.Pod) bool {
		a := p.Spec.Affinity
		if a == nil {
			return false
		}
		var terms []corev1.PodAffinityTerm
		if a.PodAffinity != nil {
			terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		if a.PodAntiAffinity != nil {
			terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
	})
}
