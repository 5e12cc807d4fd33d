package stack

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// early: the device plugin was Ready before its driver, or its container toolkit, was. It looks for GPUs when it
// starts, and where it then finds none and may not fail, it waits without an end (k8s-device-plugin
// cmd/nvidia-device-plugin/main.go, FAIL_ON_INIT_ERROR). nil where both were there before it.
func (l *pluginLink) early() *Finding {
	for _, r := range []parts.Role{parts.Driver, parts.Toolkit} {
		of := l.s.part(l.n, r)
		if of.pod == nil || of.State != "" || !of.Since.After(l.Since) {
			continue
		}
		f := l.finding(Registration, Failed, diagnosis.DevicePluginDown, fmt.Sprintf("has GPUs and offers none, though its device plugin runs: it began before the %s was ready, and looks for GPUs when it starts", r))
		f.Evidence = append(f.Evidence, readySince(l.pod, "its device plugin"), readySince(of.pod, "its "+string(r)))
		again := Mend{Kind: diagnosis.RestartDevicePlugin, Until: "the device plugin of " + l.n.Name + " has announced its GPUs"}
		f.Mends = []Mend{again, l.mend()}
		return f
	}
	return nil
}

// readySince is since when a pod is Ready, by its own condition.
func readySince(p *corev1.Pod, what string) diagnosis.Evidence {
	at := parts.ReadySince(p)
	return diagnosis.Fact(podRef(p), what+" is Ready since "+diagnosis.Clock(at), diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, "True"), view.Since("Ready", at))
}

// containerCLI is what NVIDIA's container runtime has do its work, and begins what that says when it cannot.
const containerCLI = "nvidia-container-cli: "

// runtimeItself is where that has found the GPUs, and cannot give them to a container (NVIDIA/libnvidia-container).
var runtimeItself = regexp.MustCompile(`mount error|ldcache error|container error`)

// driverless: the node's container runtime is NVIDIA's, and cannot start the device plugin's container: it finds no
// driver, or that finds no GPU.
func (l *pluginLink) driverless() *Finding {
	n := l.n
	f := l.finding(Driver, Failed, diagnosis.DriverNotReady, "has no driver that serves its GPU: NVIDIA's container runtime cannot start its device plugin: "+l.Text())
	f.Certainty = diagnosis.Likely // by its words alone
	until := "the driver of " + n.Name + " is loaded and its device plugin has announced its GPUs"
	if parts.Mismatched(l.Whole) {
		m := rebootMend(n, ": "+parts.Mismatch, until, "")
		m.Steps = []string{"see whether the machine came like that: then its image is at fault, and one that works is in the image of a node that does (its release, label kubernetes.azure.com/node-image-version on AKS)", "empty the machine and reboot it, where its packages were upgraded since"}
		f.Mends = []Mend{m}
		return f
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see what NVIDIA's driver says on " + n.Name + ", and give it one that knows its GPU", Until: until, Risk: diagnosis.MediumRisk, Minutes: 30,
		Steps:    []string{"see that nvidia-smi works on the machine, and what the kernel says of its module", "where it finds no device: later drivers know older GPUs no more (Kepler needs R470); take an image with a driver of the branch that does, or a machine with another GPU", "where there is no driver: take an image that has one, or have the GPU Operator load it"},
		Commands: slices.Concat([]string{fmt.Sprintf("kubectl -n %s describe pod %s", l.pod.Namespace, l.pod.Name)}, homes.Driver(n), []string{fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again", l.pod.Namespace, l.pod.Name)})}}
	return f
}

// hookFails: NVIDIA's container runtime finds the GPUs, and its hook cannot put them into the container: that writes the
// container's cache of libraries by the machine's ldconfig, and needs the runtime's control groups. By CDI it does neither.
func (l *pluginLink) hookFails() *Finding {
	n := l.n
	f := l.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "has a container runtime of NVIDIA's whose hook cannot give the GPUs to its device plugin: "+l.Text())
	f.Certainty = diagnosis.Likely // by its words alone
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "have NVIDIA's container runtime of " + n.Name + " hand GPUs out by CDI in place of its hook", Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.MediumRisk, Minutes: 15, StopsUnknown: true,
		Steps: []string{"see that the toolkit (libnvidia-container) is as new as the machine's system, and that ldconfig in its config.toml is there (/sbin/ldconfig.real on Ubuntu alone)", "else have GPUs described for CDI, and the runtime go by that"},
		Commands: []string{"# on the machine:", "grep -n -e ldconfig -e mode /etc/nvidia-container-runtime/config.toml; nvidia-container-cli -k -d /dev/stderr info", "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi",
			fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again", l.pod.Namespace, l.pod.Name)}}}
	return f
}
