package causes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// NotGivenToHAMi says that the default scheduler has a pod that HAMi alone can place. Who gets one that is still to be made
// HAMi's webhook says then.
func (c *Case) NotGivenToHAMi() bool {
	return !c.Unborn && c.Queue.SchedulerName() == corev1.DefaultSchedulerName && c.ofHAMi() != ""
}

// ofHAMi is what the pod asks of HAMi's accounting; empty for nothing.
func (c *Case) ofHAMi() corev1.ResourceName {
	for _, name := range whatif.OfHAMi {
		if q := c.Wants[name]; !q.IsZero() {
			return name
		}
	}
	return ""
}

// PrivilegedAsker is the first container that asks of HAMi's accounting, where all that do are
// privileged: such a container sees every card of its node, so HAMi's webhook passes over it
// (pkg/scheduler/webhook.go). Empty for none.
func (c *Case) PrivilegedAsker() string {
	first := ""
	for _, k := range c.Pod.Spec.Containers {
		if !slices.ContainsFunc(whatif.OfHAMi, func(name corev1.ResourceName) bool { q := k.Resources.Limits[name]; return !q.IsZero() }) {
			continue
		}
		if k.SecurityContext == nil || k.SecurityContext.Privileged == nil || !*k.SecurityContext.Privileged {
			return ""
		}
		first = cmp.Or(first, k.Name)
	}
	return first
}

// notGivenToHAMi: the default scheduler has it, and looks for what stands on no node.
var (
	notGivenToHAMi = PodRule{ID: diagnosis.SchedulerMissing, Tell: func(c *Case) *finding {
		if !c.NotGivenToHAMi() {
			return nil
		}
		name := c.ofHAMi()
		says, evidence := fmt.Sprintf("%s is HAMi's own accounting and on no node: HAMi's scheduler has to place the pod, and the default one has it", name),
			[]diagnosis.Evidence{diagnosis.Fact(c.podRef(), "asks "+string(name), c.itAsks(name)...)}
		if k := c.PrivilegedAsker(); k != "" {
			says += ", for HAMi leaves privileged containers alone"
			evidence = append(evidence, diagnosis.Fact(c.podRef(), "container "+k+" is privileged", c.Cluster.OfPod(c.Pod, diagnosis.That("spec.containers[name="+k+"].securityContext.privileged", "", diagnosis.Is, "true"))...))
		}
		c.entitle(diagnosis.SchedulerMissing, "HAMi's scheduler has to place it")
		return &finding{diagnosis.Proven, says, evidence}
	}}
	onNoNode = Rule{ID: diagnosis.SchedulerMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if !c.NotGivenToHAMi() || !slices.Contains(whatif.OfHAMi, b.scarce) {
			return nil
		}
		return &finding{diagnosis.Proven, "", []diagnosis.Evidence{diagnosis.NoneOf(n.Node, b.scarce)}}
	}}
)

func offersNone(n *view.Node, name corev1.ResourceName) bool {
	q := n.Status.Allocatable[name]
	return q.IsZero()
}

// announcedOnce: the node's capacity has the resource, at 0. Somebody has announced it, and has
// none to give now: a key that is there does not say that there is no such device.
func announcedOnce(n *view.Node, name corev1.ResourceName) *finding {
	if q, has := n.Status.Capacity[name]; !has || !q.IsZero() || !strings.Contains(string(name), "/") || n.HasGPUs() && strings.HasPrefix(string(name), "nvidia.com/") {
		return nil
	}
	return &finding{diagnosis.Proven, fmt.Sprintf("offers no %s, though its capacity has that name, at 0: a device plugin has announced it there, and has none to give", name),
		[]diagnosis.Evidence{diagnosis.Fact(n.Ref(), "capacity "+string(name)+"=0", diagnosis.That(diagnosis.Capacity, string(name), diagnosis.Exists, ""), diagnosis.That(diagnosis.Capacity, string(name), diagnosis.Is, "0"))}}
}

// AnnouncedOnce is what of the pod's devices a plugin has announced on the node, and has none of to give; empty for none.
func (c *Case) AnnouncedOnce(n *view.Node) corev1.ResourceName {
	for _, name := range view.SortedNames(c.Wants) {
		if announcedOnce(n, name) != nil {
			return name
		}
	}
	return ""
}

// unknown takes what no rule claimed.
var unknown = Rule{ID: diagnosis.Unknown, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if f := announcedOnce(n, b.scarce); f != nil {
		return f
	}
	if b.Plugin == "NodePorts" {
		if all := terms.PortsTaken(c.Pod, n); len(all) > 0 {
			c.entitle(diagnosis.Unknown, fmt.Sprintf("host port %d is taken", all[0].Port))
			return found(terms.TellPorts(all, n))
		}
	}
	if slices.Contains(whatif.OfHAMi, b.scarce) && c.Unborn && n.HasGPUs() {
		return &finding{diagnosis.Possible, fmt.Sprintf("HAMi counts %s by itself: whether a card has room its scheduler tells of a pod that is there", b.scarce), []diagnosis.Evidence{diagnosis.Fact(n.Ref(), b.Plugin+": "+b.Reason, c.shortOf(n, b.scarce)...)}}
	}
	misnamed := c.IsOwn(diagnosis.Unknown) && !knownOfNVIDIA(b.scarce)
	if strings.HasPrefix(string(b.scarce), nvidiaDomain) && !n.HasGPUs() && !misnamed {
		if f := byOtherNames(n, b.scarce); f != nil {
			return f
		}
		says := "no GPU on the node"
		if !stack.Looked(n) {
			says = "nothing says that the node has a GPU"
		}
		return &finding{diagnosis.Proven, says, []diagnosis.Evidence{n.NoGPU(b.scarce)}}
	}
	if name := string(b.scarce); strings.Contains(name, "/") && (misnamed || !strings.HasPrefix(name, nvidiaDomain)) && offersNone(n, b.scarce) {
		says := "offers no " + name
		if !c.Unborn && c.IsOwn(diagnosis.Unknown) {
			says = "" // the pod's own says it of every node
		}
		return &finding{diagnosis.Proven, says, []diagnosis.Evidence{diagnosis.NoneOf(n.Node, b.scarce)}}
	}
	return &finding{diagnosis.Possible, "not settled: " + b.Reason, []diagnosis.Evidence{diagnosis.Fact(n.Ref(), b.Plugin+": "+b.Reason, c.shortOf(n, b.scarce)...)}}
}}

// shortOf claims what the pod asks of a resource, and what a node has left of it.
func (c *Case) shortOf(n *view.Node, name corev1.ResourceName) []diagnosis.Claim {
	if name == "" {
		return nil
	}
	free := n.Free(name)
	return append(c.itAsks(name), diagnosis.That(diagnosis.Free, string(name), diagnosis.Is, free.String()))
}
