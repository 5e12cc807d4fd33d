package view

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
)

// PluginName is in the names of NVIDIA's device plugin's DaemonSet and container (GPU Operator and the plugin's own chart).
const PluginName = "nvidia-device-plugin"

// GKEPluginName is the container of GKE's own (container-engine-accelerators).
const GKEPluginName = "nvidia-gpu-device-plugin"

// HAMiPluginName begins the name of HAMi's DaemonSet, and of its pods.
const HAMiPluginName = "hami-device-plugin"

// MPSName is in the name of the plugin's daemon for sharing by MPS, whose pods have the plugin's name, too, and not its container.
const MPSName = "mps-control-daemon"

// Offers is what the node would advertise if the device plugin saw what the report shows; nothing without a report of positions.
// A GPU that the driver calls unhealthy is so for a plugin that starts again, too.
func (n *Node) Offers() corev1.ResourceList {
	out := corev1.ResourceList{}
	if n.Geometry == nil {
		return out
	}
	count := func(name corev1.ResourceName) {
		q := out[name]
		q.Add(resource.MustParse("1"))
		out[name] = q
	}
	for _, g := range n.Geometry.Report.GPUs {
		if !g.Healthy {
			continue
		}
		if g.MIG == nil || !g.MIG.Current {
			count(WholeGPU)
			continue
		}
		for _, in := range g.Instances {
			count(resourceOf(n, in))
		}
	}
	return out
}

// PluginOffers is Offers of a node and its report (nil where there is none) without the
// rest of the cluster.
func PluginOffers(n *corev1.Node, geo *nodeprobe.NodeGeometry) corev1.ResourceList {
	return (&Node{Node: n, Geometry: geo}).Offers()
}
