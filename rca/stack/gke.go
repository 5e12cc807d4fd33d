package stack

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// The labels of GKE's nodes with GPUs: which driver GKE installs there, and their pool.
const (
	gkeDriver = "cloud.google.com/gke-gpu-driver-version"
	gkePool   = "cloud.google.com/gke-nodepool"
)

// googlesInstaller is where the DaemonSets are that install a driver on GKE's nodes.
const googlesInstaller = "https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/master/nvidia-driver-installer/"

// googlesPlugin is the manifest of the device plugin that GKE itself brings to its nodes.
const googlesPlugin = "https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/master/cmd/nvidia_gpu/device-plugin.yaml"

// undriven: GKE's own device plugin runs on a node of a pool for which GKE installs no driver, and nobody else does: it
// waits for one without a word. nil elsewhere, and where an installer is there or GPUs were announced before.
func (l *pluginLink) undriven() *Finding {
	s, n := l.s, l.n
	if n.Labels[view.LabelGKE] == "" || n.Labels[gkeDriver] != "" || parts.PluginContainer(l.pod) != view.GKEPluginName || len(s.kit.Sets(parts.Driver)) > 0 || s.kit.Pod(n, parts.Driver) != nil || len(n.Facts().Stocks()) > 0 || s.notSeen() != "" {
		return nil
	}
	f := s.finding(Driver, Missing, diagnosis.DriverNotReady, "has no driver: GKE installs none in its pool (no label "+gkeDriver+"), and no driver installer is there", n.Ref(), "no label "+gkeDriver, diagnosis.That(diagnosis.Labels, gkeDriver, diagnosis.Absent, ""), diagnosis.That("metadata.name", "", diagnosis.ContainsNot, "nvidia-driver-installer").Of("DaemonSet/*"))
	f.Certainty = diagnosis.Likely // an image may have one
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(l.pod), "Ready for "+view.Age(s.since(l.Since))+", and the node offers nothing", l.Claims...))
	image := "cos"
	if strings.Contains(n.Status.NodeInfo.OSImage, "Ubuntu") {
		image = "ubuntu"
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "have a driver installed on " + n.Name + ": by GKE's installer, or by GKE itself in pool " + n.Labels[gkePool], Risk: diagnosis.LowRisk, Minutes: 10,
		Until: "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs",
		Commands: []string{"kubectl apply -f " + googlesInstaller + image + "/daemonset-preloaded.yaml  # for all pools without one",
			"# or by GKE, which makes the pool's nodes again: gcloud container node-pools update " + n.Labels[gkePool] + " --cluster CLUSTER --accelerator type=" + n.Labels[view.LabelGKE] + ",count=COUNT,gpu-driver-version=default",
			"kubectl get node " + n.Name + " -o jsonpath='{.status.allocatable}'"}}}
	return f
}
