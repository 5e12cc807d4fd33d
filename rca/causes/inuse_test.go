package causes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// Devices of other makers that a node has enough of are told as held; what is no device is not.
func TestDevicesOfOtherMakersAreHeld(t *testing.T) {
	for asks, want := range map[string]bool{"amd.com/gpu": true, "cpu": false} {
		w := newWorld()
		w.gpuNode(l4("n1", 1), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			for _, l := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
				l["amd.com/gpu"], l["cpu"] = list("x", "1")["x"], list("x", "4")["x"]
			}
		})
		w.pod("h", "n1", asks, 1)
		w.pod("w", "", asks, 1, func(p *corev1.Pod) {
			if asks == "cpu" {
				p.Spec.Containers[0].Resources.Requests = list("cpu", "4", "nvidia.com/gpu", "1")
			}
		})
		if got := w.told(t); strings.Contains(got, "GPUsInUse proven n1: ") != want {
			t.Errorf("%s: %s", asks, got)
		}
	}
}
