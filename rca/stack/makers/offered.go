package makers

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Offered are devices that a node has by other names than NVIDIA's own: other makers', and parts of GPUs that another plugin deals
// out (volcano-vgpu-device-plugin).
func Offered(n *view.Node) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name, q := range n.Status.Capacity {
		if own := strings.HasPrefix(string(name), "nvidia.com/"); !own && !q.IsZero() && (Of(name) != nil || name == "volcano.sh/vgpu-number") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

type otherNames struct{ all []corev1.ResourceName }

// OfferedIn are those that nodes of the cluster have.
func OfferedIn(w *view.Cluster) []corev1.ResourceName {
	return view.Kept(w, func(w *view.Cluster) *otherNames {
		var out []corev1.ResourceName
		for _, n := range w.SortedNodes() {
			out = append(out, Offered(n)...)
		}
		slices.Sort(out)
		return &otherNames{slices.Compact(out)}
	}).all
}
