package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// channels is the driver whose devices are none of their own: an IMEX channel is what pods of one ComputeDomain use together,
// and each node has one of it to give (kubernetes-sigs/dra-driver-nvidia-gpu issue 309).
const channels = "compute-domain.nvidia.com"

// share is for pods of one workload on one node, each with a claim of its own for the node's one channel: one claim that all of
// them name serves them all, and nobody waits for another to end. false where that is not so, or others of them run elsewhere:
// a claim that is allocated holds pods to its node.
func share(c *edit.Workload, n *view.Node) (edit.Change, bool) {
	running := c.Cluster.Running(c.Incident.Workload)
	if slices.ContainsFunc(running, func(p *corev1.Pod) bool { return p.Spec.NodeName != n.Name }) {
		return edit.Change{}, false
	}
	for _, d := range c.Claims.ByNode[n.Name] {
		holder := c.Claims.Inventory.Holders[d.ID]
		if holder == nil || d.ID.Driver != channels {
			continue
		}
		for i := range c.Pod.Spec.ResourceClaims {
			pc := &c.Pod.Spec.ResourceClaims[i]
			if pc.ResourceClaimTemplateName != nil && slices.ContainsFunc(running, func(p *corev1.Pod) bool { return hasFrom(p, pc, holder) }) {
				return oneClaim(c, pc, holder, running), true
			}
		}
	}
	return edit.Change{}, false
}

// hasFrom says whether a pod has a claim by the same entry of its template.
func hasFrom(p *corev1.Pod, pc *corev1.PodResourceClaim, claim *resourcev1.ResourceClaim) bool {
	same := slices.ContainsFunc(p.Spec.ResourceClaims, func(o corev1.PodResourceClaim) bool {
		return o.Name == pc.Name && o.ResourceClaimTemplateName != nil && *o.ResourceClaimTemplateName == *pc.ResourceClaimTemplateName
	})
	return same && slices.ContainsFunc(p.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
		return s.Name == pc.Name && s.ResourceClaimName != nil && *s.ResourceClaimName == claim.Name && claim.Namespace == p.Namespace
	})
}

func oneClaim(c *edit.Workload, pc *corev1.PodResourceClaim, holder *resourcev1.ResourceClaim, running []*corev1.Pod) edit.Change {
	entry, template, all := pc.Name, *pc.ResourceClaimTemplateName, c.Incident.Workload.Name+"-"+pc.Name
	ch := edit.Change{Kind: diagnosis.FixClaim, Cause: diagnosis.DRADevicesInUse, Manual: true, Minutes: 2, Risk: diagnosis.MediumRisk, Drained: running,
		Title: fmt.Sprintf("have the pods of %s use one ResourceClaim together, in place of one each by template %s: a channel of a ComputeDomain is for all of its pods on a node", c.WorkloadName(), template),
		Pod: func(p *corev1.Pod) {
			for i := range p.Spec.ResourceClaims {
				if p.Spec.ResourceClaims[i].Name == entry {
					p.Spec.ResourceClaims[i] = corev1.PodResourceClaim{Name: entry, ResourceClaimName: &holder.Name}
				}
			}
			p.Status.ResourceClaimStatuses = slices.DeleteFunc(slices.Clone(p.Status.ResourceClaimStatuses), func(s corev1.PodResourceClaimStatus) bool { return s.Name == entry })
		}}
	ch.Commands = []string{fmt.Sprintf("kubectl -n %s get resourceclaimtemplate %s -o json | jq '{apiVersion, kind: \"ResourceClaim\", metadata: {namespace: .metadata.namespace, name: \"%s\"}, spec: .spec.spec}' | kubectl create -f -", c.Pod.Namespace, template, all),
		c.EditByHand(fmt.Sprintf("spec.resourceClaims: [{name: %s, resourceClaimName: %s}]", entry, all))}
	return ch
}
