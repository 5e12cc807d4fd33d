package causes

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// rarely are words for what nodes are not usually short of, where it is that alone.
var rarely = map[corev1.ResourceName]string{corev1.ResourcePods: "no more pods are allowed", corev1.ResourceEphemeralStorage: "ephemeral storage short"}

// entitleHost has a headline speak of what is short on the nodes that lack nothing else; of all nodes that are short
// where each lacks something else, too.
func entitleHost(c *Case) {
	var only, any []corev1.ResourceName
	for _, n := range c.Judged {
		short, all := []corev1.ResourceName(nil), len(n.Blockers) > 0
		for _, b := range n.Blockers {
			name, _ := view.Insufficient(whatif.Blocker{Plugin: b.Plugin, Reason: b.Reason})
			if b.Cause != diagnosis.HostResourcesShort {
				all = false
			} else if !slices.Contains(short, corev1.ResourceName(name)) {
				short = append(short, corev1.ResourceName(name))
			}
		}
		any = append(any, short...)
		if all {
			only = append(only, short...)
		}
	}
	if len(only) == 0 {
		only = any
	}
	if words := rarely[first(only)]; words != "" && !slices.ContainsFunc(only, func(name corev1.ResourceName) bool { return name != only[0] }) {
		c.entitle(diagnosis.HostResourcesShort, words)
	}
}

func first(names []corev1.ResourceName) corev1.ResourceName {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// hostResourcesShort claims what every node has without a device plugin: CPU, memory, pods, ephemeral storage, and the
// huge pages that its kernel has set aside (a kubelet names each size, at 0 where there are none).
var hostResourcesShort = Rule{ID: diagnosis.HostResourcesShort, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "NodeResourcesFit" {
		return nil
	}
	resource, name := b.scarce, string(b.scarce)
	if resource != corev1.ResourceCPU && resource != corev1.ResourceMemory && resource != corev1.ResourceEphemeralStorage && resource != corev1.ResourcePods && !view.HugePages(resource) {
		return nil
	}
	free, asked := n.Free(resource), c.Wants[resource]
	fact := fmt.Sprintf("%s of %s free, %s asked", free.String(), name, asked.String())
	claims := c.shortOf(n, resource)
	if resource == corev1.ResourcePods {
		fact = fmt.Sprintf("%d pods run, no more are allowed", len(n.Pods))
		claims = []diagnosis.Claim{diagnosis.That("count(pods)", "", diagnosis.Is, strconv.Itoa(len(n.Pods))), diagnosis.That(diagnosis.Free, name, diagnosis.Is, free.String())}
	}
	says := "not enough " + name
	switch {
	case resource == corev1.ResourcePods:
		says = "no more pods are allowed on it"
	case view.HugePages(resource) && offersNone(n, resource):
		says = "no " + name + " are set aside on it"
		c.entitle(diagnosis.HostResourcesShort, "no huge pages are set aside")
	case resource == corev1.ResourceEphemeralStorage && offersNone(n, resource):
		says, fact = "its kubelet reports no "+name, fmt.Sprintf("has no %s in its status, %s asked", name, asked.String())
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact, claims...)}
	if g := admission.GivenBy(c.Cluster.State.LimitRanges, c.Pod, resource); g != nil && g.Decides(c.Pod, free) {
		says, evidence = says+"; "+g.Says(), append(evidence, g.Tell(c.Pod)...)
	}
	return &finding{diagnosis.Proven, says, evidence}
}}
