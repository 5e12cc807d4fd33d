package makers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Offered are GPUs and the like that a node has by names of other makers than the one given: NVIDIA's among them, and parts of GPUs that
// another plugin deals out (volcano-vgpu-device-plugin).
func Offered(n *view.Node, than corev1.ResourceName) []corev1.ResourceName {
	return others(devices(n), than)
}

// devices are the names by which a node has GPUs and the like.
func devices(n *view.Node) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name, q := range n.Status.Capacity {
		if !q.IsZero() && (view.IsGPU(name) || Of(name) != nil || name == "volcano.sh/vgpu-number") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func others(names []corev1.ResourceName, than corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return maker(name) == maker(than) })
}

// maker is the domain that a maker names its devices by.
func maker(name corev1.ResourceName) string {
	domain, _, _ := strings.Cut(string(name), "/")
	return domain
}

type names struct{ all []corev1.ResourceName }

// OfferedIn are those that nodes of the cluster have.
func OfferedIn(w *view.Cluster, than corev1.ResourceName) []corev1.ResourceName {
	return others(view.Kept(w, func(w *view.Cluster) *names {
		var out []corev1.ResourceName
		for _, n := range w.SortedNodes() {
			out = append(out, devices(n)...)
		}
		slices.Sort(out)
		return &names{slices.Compact(out)}
	}).all, than)
}

// Instead is what could be asked for in place of what no node offers, as it stands behind what is done else; empty where nodes have
// nothing of the kind.
func Instead(w *view.Cluster, than corev1.ResourceName, who string) string {
	others := OfferedIn(w, than)
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(", or let %s ask for what there is, if it can run on that: %s", who, strings.Trim(fmt.Sprint(others), "[]"))
}

// PluginSets are the DaemonSets that are the device plugin of a resource's maker; none for a resource of
// NVIDIA's for containers, or of nobody that is known.
func PluginSets(w *view.Cluster, resource corev1.ResourceName) []*parts.Set {
	if m := Of(resource); m != nil {
		return parts.Of(w).Sets(m.Plugin)
	}
	return nil
}
