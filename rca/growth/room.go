package growth

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// takenByDaemons tells of DaemonSets that ask for the same devices as the pod. Karpenter leaves room for
// the pods of each DaemonSet on each machine that it makes, before it asks what else fits
// (pkg/controllers/provisioning/scheduling/scheduler.go).
func (c ofPool) takenByDaemons(g *Growth, p *scaling.Pool, _ scaling.Reason) (string, []diagnosis.Evidence) {
	var parts []string
	var facts []diagnosis.Evidence
	for _, a := range c.Asks {
		for _, d := range c.Cluster.State.DaemonSets {
			like := &corev1.Pod{Spec: d.Spec.Template.Spec}
			taken := view.PodRequests(like)[a.Resource]
			if taken.IsZero() || !p.Takes(like) {
				continue
			}
			g.Takers = append(g.Takers, d)
			parts = append(parts, fmt.Sprintf("DaemonSet %s/%s takes %s %s", d.Namespace, d.Name, taken.String(), a.Resource))
			facts = append(facts, diagnosis.Fact(view.ObjectRef("DaemonSet", d.Namespace, d.Name), "its pods ask for "+taken.String()+" "+string(a.Resource), askedBy(&d.Spec.Template.Spec, a.Resource)...))
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	return fmt.Sprintf("no machine of NodePool %s has %s beside what DaemonSets take of each: %s", p.Name, asksText(c.Asks), strings.Join(parts, ", ")), facts
}

// askedBy claims what containers of a template ask for of a device.
func askedBy(spec *corev1.PodSpec, name corev1.ResourceName) []diagnosis.Claim {
	var out []diagnosis.Claim
	for i := range spec.Containers {
		k := &spec.Containers[i]
		for list, of := range map[string]corev1.ResourceList{"requests": k.Resources.Requests, "limits": k.Resources.Limits} {
			if q, asked := of[name]; asked {
				out = append(out, diagnosis.That("spec.template.spec.containers[name="+k.Name+"].resources."+list, string(name), diagnosis.Is, q.String()))
				break
			}
		}
	}
	return out
}

func asksText(all []view.Ask) string {
	parts := make([]string, len(all))
	for i, a := range all {
		parts[i] = fmt.Sprintf("%d %s", a.Count, a.Resource)
	}
	return strings.Join(parts, ", ")
}

// smallDisk tells of the disk for pods' own files that is the node class's matter, not the machine's.
func (c ofPool) smallDisk(g *Growth, p *scaling.Pool, _ scaling.Reason) (string, []diagnosis.Evidence) {
	asked, k := c.Wants[corev1.ResourceEphemeralStorage], p.Class
	if k.Disk.IsZero() || k.DiskHolds(asked) {
		return "", nil
	}
	g.Disk = true
	size, fact, claim := "Karpenter's default size", "spec.blockDeviceMappings says nothing of "+k.Device, diagnosis.That("spec.blockDeviceMappings", "", diagnosis.ContainsNot, k.Device)
	if k.DiskSaid {
		size, fact, claim = k.Disk.String(), "spec.blockDeviceMappings gives "+k.Device+" "+k.Disk.String(), diagnosis.That("spec.blockDeviceMappings", "", diagnosis.Contains, k.Disk.String())
	}
	return fmt.Sprintf("%s %s gives each machine of NodePool %s, whatever its type, a disk of %s for the files of pods, and the pod asks for %s ephemeral-storage", k.Kind, k.Name, p.Name, size, asked.String()),
		[]diagnosis.Evidence{diagnosis.Fact(k.Ref(), fact, claim), c.askedOf(string(corev1.ResourceEphemeralStorage))}
}

// shared tells of a pool of which a node offers more of a device than Karpenter counts on its machine: its
// device plugin shares each, and no instance type speaks of that.
func (c ofPool) shared(g *Growth, p *scaling.Pool, _ scaling.Reason) (string, []diagnosis.Evidence) {
	claims := c.Cluster.Outlook().Claims
	for _, a := range c.Asks {
		for i := range claims {
			k, n := &claims[i], c.Cluster.Nodes[claims[i].Node]
			counts, counted := k.Capacity[a.Resource]
			if k.Pool != p.Name || n == nil || !counted || counts.Value() >= a.Count || n.Allocatable(a.Resource) < a.Count {
				continue
			}
			g.Lacks, g.Shares, g.Like = string(a.Resource), n, c.letOn(n) && c.freshHolds(n)
			offers := fmt.Sprint(n.Allocatable(a.Resource))
			return fmt.Sprintf("Karpenter counts %s %s on a machine of NodePool %s such as %s, which offers %s: shares are made on the node, and no instance type speaks of them", counts.String(), a.Resource, p.Name, n.Name, offers),
				[]diagnosis.Evidence{diagnosis.Fact("NodeClaim/"+k.Name, "status.capacity has "+counts.String()+" "+string(a.Resource), diagnosis.That("status.capacity", string(a.Resource), diagnosis.Is, counts.String())),
					diagnosis.Fact("Node/"+n.Name, "offers "+offers+" "+string(a.Resource), diagnosis.That(diagnosis.Allocatable, string(a.Resource), diagnosis.Is, offers))}
		}
	}
	return "", nil
}

// countsGPUs are the node classes whose providers are known to count the GPUs of their machines: AWS's,
// that of EKS Auto Mode, Azure's.
var countsGPUs = []string{"EC2NodeClass", "NodeClass", "AKSNodeClass"}

// uncounted tells of a pool for GPUs that another provider makes machines for, none of which was ever seen
// to have one in Karpenter's books: it may not count them (oracle/karpenter-provider-oci issue 31).
func (c ofPool) uncounted(g *Growth, p *scaling.Pool, r scaling.Reason) (string, []diagnosis.Evidence) {
	if !c.asksNVIDIA() || p.Class.Kind == "" || !p.OfGPUs() || slices.Contains(countsGPUs, p.Class.Kind) {
		return "", nil
	}
	name := c.Asks[0].Resource
	if slices.ContainsFunc(c.Cluster.Outlook().Claims, func(k scaling.Claim) bool { q := k.Capacity[name]; return k.Pool == p.Name && !q.IsZero() }) {
		return "", nil
	}
	g.Lacks = string(name)
	return fmt.Sprintf("%s; whether %s, by which its machines are made, has Karpenter count their %s shows nowhere", c.lacksSays("Karpenter", "no instance type of NodePool "+p.Name, "", r), p.Class.Kind, name),
		[]diagnosis.Evidence{diagnosis.Fact("NodePool/"+p.Name, "makes machines by "+p.Class.Kind+" "+p.Class.Name, diagnosis.That("spec.template.spec.nodeClassRef.kind", "", diagnosis.Is, p.Class.Kind)),
			diagnosis.Fact(view.PodRef(c.Pod), "asks for "+asksText(c.Asks), c.requested()...)}
}
