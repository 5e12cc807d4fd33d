package makers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Silent tells of the maker's device plugin on a node that offers none of a resource, where nothing is wrong with its pod, and
// in how few words to look for why. A capacity that is left is of devices that the plugin has announced: it calls them
// unhealthy, or its kubelet has lost it since (pkg/kubelet/cm/devicemanager, GetCapacity).
func (m *Maker) Silent(n *view.Node, resource corev1.ResourceName) (says, look string, ill bool) {
	switch had, split := n.Capacity(resource), m.Parts(n); {
	case had > 0:
		return fmt.Sprintf("%s runs there and calls all of them unhealthy, or its kubelet has lost it (capacity %d, allocatable 0)", m.Plug, had), "see why " + m.Plug + " calls the " + m.Devs() + " of " + n.Name + " unhealthy", true
	case split != "":
		return m.Plug + " runs there and announces none of the parts that they are in (" + split + ")", "", false
	}
	return m.Plug + " runs there and announces none, as where " + m.Behind, "", false
}
