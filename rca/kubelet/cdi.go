package kubelet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// unresolved is CDI's word for a device that no specification on the node describes
// (tags.cncf.io/container-device-interface, pkg/cdi).
var unresolved = regexp.MustCompile(`unresolvable CDI devices? ([^\s:",]+)`)

// writers are who describes the devices of a vendor as it starts, or prepares a claim. A specification that another
// writes is not made by hand: what is wrong is that writer, or where the runtime looks.
var writers = map[string]string{
	"k8s.gpu.nvidia.com":            "NVIDIA's DRA driver",
	"k8s.compute-domain.nvidia.com": "NVIDIA's DRA driver",
	"k8s.device-plugin.nvidia.com":  "NVIDIA's device plugin",
}

// lookFor shows what a vendor's part has written on the machine, and where its runtime looks for it. On Talos nobody can write into
// the folders that are usual (documentation of Talos, containerd; siderolabs/talos#10613).
func lookFor(n *view.Node, vendor string) []string {
	if homes.Talos(n.Status.NodeInfo.OSImage) {
		return []string{fmt.Sprintf("talosctl -n %s ls /var/run/cdi /etc/cdi  # is %s-*.yaml there?", n.Name, vendor), "talosctl -n " + n.Name + " read /etc/cri/conf.d/cri.toml  # enable_cdi, cdi_spec_dirs",
			"# nobody can write into those folders there: have machine.files, /etc/cri/conf.d/20-customization.part, name others (cdi_spec_dirs), and who describes the devices write there"}
	}
	return []string{"# on the machine:", "ls /var/run/cdi /etc/cdi  # is " + vendor + "-*.yaml there?", "containerd config dump | grep -i cdi  # is CDI on, and are those its folders?"}
}

// cdi: the runtime knows no device of that name. NVIDIA's own tool describes devices of nvidia.com and
// management.nvidia.com (nvidia-ctk cdi generate --vendor --class), others write theirs themselves.
func (s stopped) cdi(device string) *Stop {
	node := s.pod.Spec.NodeName
	says := fmt.Sprintf("the container runtime of %s knows no CDI device %s: no specification on the machine describes it", node, device)
	vendor, _, _ := strings.Cut(device, "/")
	who, known := writers[vendor]
	if !known && !strings.HasSuffix(vendor, "nvidia.com") {
		who, known = "the device plugin or driver of "+vendor, true
	}
	if known {
		stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, says+" where the runtime looks; "+who+" is to describe it")
		stop.Title, stop.Words = fmt.Sprintf("have the runtime of %s find what %s describes", node, who), "no CDI specification"
		stop.mended(s, func(n *view.Node) []string { return lookFor(n, vendor) }, "what is written on the machine is in no object")
		if s.preparedOnce(device) {
			stop.Title = fmt.Sprintf("make %s/%s again, so that its claim is prepared again: what was written on %s for it before is gone", s.pod.Namespace, s.pod.Name, node)
			stop.Risk, stop.Minutes, stop.StopsUnknown, stop.Unproven = diagnosis.LowRisk, 2, false, "what the driver prepares is seen when it has"
			stop.Commands = append([]string{MakeAgain(s.pod)}, stop.Commands...)
		}
		stop.Commands = append([]string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + node + "  # its pod there: what does its log say it has written, and where?"}, stop.Commands...)
		return stop
	}
	class := s.runtimeClass()
	ofOperator := class != nil && strings.HasPrefix(device, "management.nvidia.com/") && !strings.HasSuffix(device, "=all")
	if ofOperator { // NVIDIA/nvidia-container-toolkit#1239
		says += "; of that kind NVIDIA's toolkit describes all GPUs as one, for the operator's own pods, and the pod comes there by RuntimeClass " + class.Name
	}
	stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, says)
	stop.Title, stop.Words = "have CDI's specification of its GPUs written on "+node, "no CDI specification"
	if ofOperator {
		stop.Title = fmt.Sprintf("take RuntimeClass %s from the pod's template, or have CDI's specification of each GPU written on %s", class.Name, node)
		stop.Evidence = []diagnosis.Evidence{diagnosis.Fact("RuntimeClass/"+class.Name, "is the pod's", diagnosis.That("spec.runtimeClassName", "", diagnosis.Is, class.Name).Of(view.PodRef(s.pod)))}
	}
	machine := func(*view.Node) []string { return describeGPUs(device) }
	if n := s.w.Nodes[node]; n != nil && view.OfJetson(n.Status.NodeInfo.KernelVersion) {
		s.onJetson(stop, n)
		machine = homes.Jetson
	}
	stop.mended(s, machine, "what is written on the machine is in no object")
	return stop
}

// onJetson: NVIDIA's runtime is to go by the lists of files that JetPack brings (mode csv), and not by a description of CDI: nvidia-ctk
// cdi generate finds no GPU by NVML there, and calls none as the device plugin does (kubeedge/kubeedge#6425).
func (s stopped) onJetson(stop *Stop, n *view.Node) {
	stop.Title = "have NVIDIA's container runtime of " + n.Name + ", which is a Jetson, give the GPU by its lists of files (mode csv), not by CDI"
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(n.Ref(), "is a Jetson: kernel "+n.Status.NodeInfo.KernelVersion, diagnosis.That("status.nodeInfo.kernelVersion", "", diagnosis.Is, n.Status.NodeInfo.KernelVersion)))
}

// preparedOnce says whether a device is that of a claim by which its container has run: the kubelet has a claim prepared once for a
// pod (pkg/kubelet/cm/dra), and a boot empties the folder of what was written for it. A pod that asks for no extended resource has its
// devices by its claims alone.
func (s stopped) preparedOnce(device string) bool {
	_, class, _ := strings.Cut(device, "/")
	ofClaim := strings.HasPrefix(class, "claim=") || !asksExtended(s.pod)
	return ofClaim && len(s.pod.Spec.ResourceClaims) > 0 && incident.FailingContainer(s.pod.Status) != nil && Ran(s.pod)
}

func asksExtended(p *corev1.Pod) bool {
	for name := range incident.Requests(p) {
		if incident.OfDevices(name) {
			return true
		}
	}
	return false
}

// Ran says whether a container of the pod has run before it stopped, as before a boot of its machine.
func Ran(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return slices.ContainsFunc([]*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated}, func(t *corev1.ContainerStateTerminated) bool {
			return t != nil && !t.StartedAt.IsZero()
		})
	})
}

// MakeAgain is the command that has a pod made again.
func MakeAgain(p *corev1.Pod) string {
	return fmt.Sprintf("kubectl -n %s delete pod %s  # its owner makes another; one without an owner: kubectl get -o yaml, then kubectl replace --force", p.Namespace, p.Name)
}

// describeGPUs has NVIDIA's tool describe the machine's GPUs under the vendor and class of a device. What the operator's toolkit
// describes it writes to /var/run/cdi/VENDOR-CLASS.yaml at each start, and a description there goes before one in /etc/cdi
// (cncf-tags/container-device-interface, pkg/cdi/doc.go): one for each GPU lasts beside it in /etc/cdi.
func describeGPUs(device string) []string {
	kind, _, _ := strings.Cut(device, "=")
	vendor, class, _ := strings.Cut(kind, "/")
	generate := "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"
	if kind != "nvidia.com/gpu" {
		generate = fmt.Sprintf("nvidia-ctk cdi generate --vendor=%s --class=%s --device-name-strategy=uuid --output=/etc/cdi/%[1]s-%[2]s-each.yaml", vendor, class)
	}
	return []string{"# on the machine:", "nvidia-ctk cdi list  # what is described", generate + "  # of MIG devices again after each change of the layout"}
}
