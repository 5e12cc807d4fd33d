package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// mostZones bounds how many NUMA zones of a node are told.
const mostZones = 8

// zones is what the node's NodeResourceTopology says that each of its NUMA zones has left of
// what the pod asks for, and of CPU (topology.node.k8s.io/v1alpha2, as NFD's topology updater
// and others write it). Empty where there is no such object, or it tells nothing of that.
func (c *Case) zones(node string) (string, []diagnosis.Claim) {
	var out []string
	var claims []diagnosis.Claim
	for _, u := range c.Cluster.State.NodeTopologies {
		if u.GetName() != node {
			continue
		}
		all, _, err := unstructured.NestedSlice(u.Object, "zones")
		if err != nil {
			return "", nil
		}
		for _, item := range all {
			zone, ok := item.(map[string]any)
			if !ok || zone["type"] != "Node" || len(out) == mostZones {
				continue
			}
			if has, is := c.zoneHas(zone); has != "" {
				out, claims = append(out, view.Quotable(textOf(zone, "name"), 40)+" has "+has), append(claims, is...)
			}
		}
	}
	return strings.Join(out, ", "), claims
}

// zoneHas lists what one zone has left, in the order in which the pod asks.
func (c *Case) zoneHas(zone map[string]any) (string, []diagnosis.Claim) {
	wanted := []corev1.ResourceName{}
	for _, a := range c.Asks {
		wanted = append(wanted, a.Resource)
	}
	var out []string
	var claims []diagnosis.Claim
	for _, name := range append(wanted, corev1.ResourceCPU) {
		resources, ok := zone["resources"].([]any)
		if !ok {
			return "", nil
		}
		for _, item := range resources {
			r, ok := item.(map[string]any)
			if !ok || r["name"] != string(name) {
				continue
			}
			left, err := resource.ParseQuantity(textOf(r, "available"))
			all, wrong := resource.ParseQuantity(textOf(r, "allocatable"))
			if err == nil && wrong == nil {
				out = append(out, fmt.Sprintf("%s of %s %s", left.String(), all.String(), name))
				at := "zones[name=" + textOf(zone, "name") + "].resources[name=" + string(name) + "]"
				claims = append(claims, diagnosis.That(at+".available", "", diagnosis.Is, left.String()), diagnosis.That(at+".allocatable", "", diagnosis.Is, all.String()))
			}
		}
	}
	return strings.Join(out, " and "), claims
}

// textOf is a field that is a text; empty where it is none.
func textOf(m map[string]any, key string) string {
	s, ok := m[key].(string)
	if !ok {
		return ""
	}
	return s
}
