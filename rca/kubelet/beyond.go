package kubelet

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// Occupied says whether another pod holds GPUs of the node, or CPUs of its own: the kubelet gives
// those to containers that ask whole ones of a pod whose requests are its limits. Where nobody
// does, a pod that no NUMA node has room for has to ask for less.
func (t *Turned) Occupied() bool {
	return t.Node == nil || slices.ContainsFunc(t.Node.Pods, func(p *corev1.Pod) bool {
		return view.HoldsGPU(t.Node.Requests[p]) || slices.ContainsFunc(p.Spec.Containers, func(k corev1.Container) bool { return OwnCPUs(p, k) })
	})
}

// Vacant says that nobody else has any of the node's GPUs, nor CPUs of its own, and that the pod asks for no more than
// half of either: of two NUMA nodes, as most machines have, one has room for it now.
func (c *Case) Vacant(t *Turned) bool {
	if t.Occupied() || c.Beyond(t) != nil {
		return false
	}
	names := []corev1.ResourceName{corev1.ResourceCPU}
	for _, a := range c.Asks {
		names = append(names, a.Resource)
	}
	wants := view.PodRequests(c.Pod)
	return !slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
		asked, has := wants[name], t.Node.Status.Allocatable[name]
		return 2*asked.MilliValue() > has.MilliValue()
	})
}

// OwnCPUs says whether the kubelet gives a container CPUs of its own, and so looks where they
// lie (pkg/kubelet/cm/cpumanager/policy_static.go, guaranteedCPUs).
func OwnCPUs(p *corev1.Pod, k corev1.Container) bool {
	cpu, limit := k.Resources.Requests[corev1.ResourceCPU], k.Resources.Limits[corev1.ResourceCPU]
	return p.Status.QOSClass == corev1.PodQOSGuaranteed && !cpu.IsZero() && cpu.MilliValue()%1000 == 0 && cpu.Cmp(limit) == 0
}

// Beyond is what a pod asks more of than any NUMA node of its node has, all of it free.
type Beyond struct {
	Resource    corev1.ResourceName
	Most, Asked resource.Quantity
}

// Beyond is told by the node's NodeResourceTopology; nil where there is none, and where a NUMA
// node has what is asked. Of several the first counts, in the order in which the pod asks: what
// has no GPUs does not help with CPUs.
func (c *Case) Beyond(t *Turned) *Beyond {
	zones, wholePod := c.numaNodes(t.On)
	if len(zones) == 0 {
		return nil
	}
	names := []corev1.ResourceName{}
	for _, a := range c.Asks {
		names = append(names, a.Resource)
	}
	for _, name := range append(names, corev1.ResourceCPU) {
		asked := c.askedTogether(name, wholePod)
		var most resource.Quantity
		for _, z := range zones {
			if has := z[name]; has.Cmp(most) > 0 {
				most = has
			}
		}
		if asked.Cmp(most) > 0 {
			if most.IsZero() {
				return nil // it is not told of by zone
			}
			return &Beyond{name, most, asked}
		}
		zones = slices.DeleteFunc(zones, func(z corev1.ResourceList) bool { has := z[name]; return has.Cmp(asked) < 0 })
	}
	return nil
}

// askedTogether is what has to lie on one NUMA node: what the largest container asks, or, under
// the scope of pods, all of them. CPUs count where the kubelet gives them to it alone.
func (c *Case) askedTogether(name corev1.ResourceName, wholePod bool) resource.Quantity {
	var most, sum resource.Quantity
	for _, k := range c.Pod.Spec.Containers {
		q := k.Resources.Requests[name]
		if limit := k.Resources.Limits[name]; q.IsZero() {
			q = limit
		}
		if name == corev1.ResourceCPU && !OwnCPUs(&corev1.Pod{Status: c.Refusal}, k) {
			continue
		}
		sum.Add(q)
		if q.Cmp(most) > 0 {
			most = q
		}
	}
	if wholePod {
		return sum
	}
	return most
}

// numaNodes are what each NUMA node of a node has for pods, and whether the kubelet aligns whole
// pods and not their containers (topology.node.k8s.io/v1alpha2).
func (c *Case) numaNodes(node string) (zones []corev1.ResourceList, wholePod bool) {
	for _, u := range c.Cluster.State.NodeTopologies {
		if u.GetName() != node {
			continue
		}
		wholePod = alignsPods(u)
		all, _, err := unstructured.NestedSlice(u.Object, "zones")
		if err != nil {
			return nil, wholePod
		}
		for _, item := range all {
			if zone, ok := item.(map[string]any); ok && zone["type"] == "Node" {
				zones = append(zones, allocatableOf(zone))
			}
		}
	}
	return zones, wholePod
}

func allocatableOf(zone map[string]any) corev1.ResourceList {
	out := corev1.ResourceList{}
	list, ok := zone["resources"].([]any)
	if !ok {
		return out
	}
	for _, item := range list {
		r, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if q, err := resource.ParseQuantity(textOf(r, "allocatable")); err == nil {
			out[corev1.ResourceName(textOf(r, "name"))] = q
		}
	}
	return out
}

// alignsPods is written in one of two ways: as a policy, which v1alpha2 still takes, or as an
// attribute.
func alignsPods(u *unstructured.Unstructured) bool {
	policies, _, err := unstructured.NestedStringSlice(u.Object, "topologyPolicies")
	if err == nil && slices.ContainsFunc(policies, func(p string) bool { return strings.HasSuffix(p, "PodLevel") }) {
		return true
	}
	attributes, _, err := unstructured.NestedSlice(u.Object, "attributes")
	return err == nil && slices.ContainsFunc(attributes, func(a any) bool {
		m, ok := a.(map[string]any)
		return ok && m["name"] == "topologyManagerScope" && m["value"] == "pod"
	})
}
