package stack

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
)

// ofImage completes a finding of the GPU Operator's driver that fails on such a machine: it is to be kept
// off, and the driver to come with the image.
func (l *driverLink) ofImage(f *Finding) {
	n := l.n
	f.Says += "; it runs Talos, whose driver is an extension of the machine's image, and not to be installed by the GPU Operator"
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "image "+n.Status.NodeInfo.OSImage, diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, n.Status.NodeInfo.OSImage)))
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("have NVIDIA's driver in the image of %s, and the GPU Operator install none there", n.Name), Until: f.Mends[0].Until, Risk: diagnosis.MediumRisk, Minutes: 30, Reboots: true,
		Steps: []string{"have the image made with the extensions nvidia-open-gpu-kernel-modules (or nonfree-kmod-nvidia) and nvidia-container-toolkit of one driver version, and the machine upgraded to it: it starts again for that",
			"have its modules loaded: nvidia, nvidia_uvm, nvidia_drm and nvidia_modeset in machine.kernel.modules",
			"keep the GPU Operator's driver off; its toolkit too, where the extension brings NVIDIA's runtime along (up to Talos v1.13)"},
		Commands: homes.Extensions(n)}
	if l.others(homes.Talos) {
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl label node %s %s=false --overwrite", n.Name, DeployDriver))
	} else {
		m.Commands = append(m.Commands, l.set(`"enabled":false`))
	}
	f.Mends = []Mend{m}
}

// unvalidated: a part of the GPU Operator waits in driver-validation on a machine that has its driver in its image: it
// looks for nvidia-smi where Talos has none (siderolabs/extensions issue 385).
func (p *part) unvalidated() *Finding {
	n, key := p.n, p.n.TalosDriver()
	f := p.finding(Driver, Waiting, diagnosis.DriverNotReady, fmt.Sprintf("has its driver in the image of Talos (label %s=%s), and the GPU Operator waits to see it: its validator looks for nvidia-smi where Talos has none", key, n.Labels[key]))
	f.Certainty = diagnosis.Likely
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "label "+key+"="+n.Labels[key], n.Labelled(key)...))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install NVIDIA's device plugin by itself, and have the GPU Operator leave " + n.Name + " alone", Until: "a device plugin has announced the GPUs of " + n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps: []string{"see that the driver is loaded: its modules are named in machine.kernel.modules, and the machine's Talos and driver are of one version", "or tell a GPU Operator that can be told where the driver is: hostPaths.driverInstallDir"},
		Commands: append(homes.Extensions(n), fmt.Sprintf("kubectl label node %s %soperands=false --overwrite", n.Name, parts.Deploys),
			"helm repo add nvdp https://nvidia.github.io/k8s-device-plugin && helm upgrade -i nvidia-device-plugin nvdp/nvidia-device-plugin -n kube-system --set runtimeClassName=nvidia",
			"kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")}}
	return f
}
