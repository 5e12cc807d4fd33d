package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// onMachine is why nothing that is done about a device plugin's devices can be tried.
const onMachine = "what a device plugin finds on its machine is in no object"

// lookAtAnnouncer is for the device plugin that is there for a resource and has announced none: it does not work, runs
// nowhere, or finds no device where it runs.
func lookAtAnnouncer(a *causes.Announcer, name corev1.ResourceName) edit.Change {
	ns := a.Set.Namespace
	if a.Pod == nil {
		return edit.LookAt(diagnosis.Unknown, fmt.Sprintf("have device plugin %s run on the nodes that have %s: it has no pod", a.Name(), name), "which nodes have such devices is in no object",
			fmt.Sprintf("kubectl -n %s describe daemonset %s  # its selector and tolerations, and why none of its pods is made", ns, a.Set.Name),
			"kubectl get nodes --show-labels")
	}
	title := fmt.Sprintf("see why device plugin %s finds no %s on %s: its log, and the driver in that node's image", a.Name(), name, a.Pod.Spec.NodeName)
	if a.Trouble != "" {
		title = fmt.Sprintf("mend device plugin %s, which announces %s: %s does not work", a.Name(), name, a.Pod.Name)
	}
	commands := []string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", ns, a.Pod.Name), fmt.Sprintf("kubectl -n %s describe pod %s", ns, a.Pod.Name)}
	return edit.LookAt(diagnosis.Unknown, title, onMachine, commands...)
}

// announceAgain is for the node on which a device plugin has announced what it has none of by now.
func announceAgain(c *Bench, n *view.Node) []edit.Change {
	name := c.AnnouncedOnce(n)
	if name == "" {
		return nil
	}
	title := fmt.Sprintf("have the device plugin of %s on %s find its devices again: it has announced some, and has none to give", name, n.Name)
	commands := []string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # its device plugin: its log"}
	if a := causes.AnnouncerOf(c.Case, name); a != nil && a.Pod != nil && a.Pod.Spec.NodeName == n.Name {
		commands = []string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", a.Set.Namespace, a.Pod.Name)}
	}
	if causes.OfMachine(c.Case) {
		title = fmt.Sprintf("bind the devices of %s on %s to vfio-pci, and have what announces them look again", name, n.Name)
		commands = append([]string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host lspci -nnk  # the device has to say 'Kernel driver in use: vfio-pci': after a reboot another driver may have it", n.Name)}, commands...)
		commands = append(commands, lookAgain(n)...)
	}
	return []edit.Change{edit.LookAt(diagnosis.Unknown, title, onMachine, commands...)}
}

// ofKubeVirt is the label by which KubeVirt's pods say what they are.
const ofKubeVirt = "kubevirt.io"

// lookAgain starts what announces devices for virtual machines on a node: KubeVirt's own handler, for those that its
// permittedHostDevices lists without an external provider, and Harvester's controller for the others, which gives out what
// is claimed (PCIDeviceClaim).
func lookAgain(n *view.Node) []string {
	var out []string
	for _, p := range n.Pods {
		switch {
		case p.Labels[ofKubeVirt] == "virt-handler":
			out = append(out, fmt.Sprintf("kubectl -n %s delete pod %s  # KubeVirt's handler announces what permittedHostDevices lists when it starts; virtual machines run on", p.Namespace, p.Name))
		case strings.HasPrefix(p.Name, "pcidevices-controller"), strings.HasPrefix(p.Name, "harvester-pcidevices"):
			out = append(out, "kubectl get pcideviceclaims.devices.harvesterhci.io  # Harvester: its claim switched off and on again (delete it, and make it again) binds the device to vfio-pci",
				fmt.Sprintf("kubectl -n %s delete pod %s  # Harvester's controller announces what is claimed", p.Namespace, p.Name))
		}
	}
	slices.Sort(out)
	return out
}

// permitDevices is for the card of a virtual machine that no node offers: KubeVirt's handler announces what its configuration
// lists, of cards that vfio-pci has, or leaves that to a device plugin.
func permitDevices(c *Bench, name corev1.ResourceName) edit.Change {
	commands := []string{
		"kubectl get kubevirts -A -o yaml  # spec.configuration.permittedHostDevices: the card's vendor:device under " + string(name) + ", with externalResourceProvider only where a device plugin announces it; featureGates: HostDevices, and GPU before KubeVirt v1",
		"kubectl debug node/NODE -it --image=busybox --profile=sysadmin -- chroot /host lspci -nnk -d 10de:  # on the machine with the card: 'Kernel driver in use: vfio-pci'",
	}
	for _, d := range c.Cluster.State.DaemonSets {
		if d.Spec.Template.Labels[ofKubeVirt] == "virt-handler" {
			commands = append(commands, fmt.Sprintf("kubectl -n %s rollout restart daemonset %s  # it announces what is listed when it starts; virtual machines run on. One that still does not is of a version that does not take the list over: update KubeVirt", d.Namespace, d.Name))
		}
	}
	commands = append(commands, "kubectl get nodes -o custom-columns=NAME:.metadata.name,OFFERS:.status.allocatable")
	return edit.LookAt(diagnosis.Unknown, fmt.Sprintf("have KubeVirt announce %s on the node with the card: listed in permittedHostDevices, and bound to vfio-pci", name), onMachine, commands...)
}

// kvm is what KubeVirt's own device plugin gives virtual machines: the processor's virtualization.
const kvm = "devices.kubevirt.io/kvm"

// seeToUnhealthy is for devices of which none is healthy on any node.
func seeToUnhealthy(c *Bench, name corev1.ResourceName) edit.Change {
	a := causes.AnnouncerOf(c.Case, name)
	var again []*corev1.Pod // who starts again
	title := fmt.Sprintf("see why all %s of the nodes are unhealthy to the device plugin that has announced it", name)
	commands := []string{fmt.Sprintf("kubectl get nodes -o custom-columns='NAME:.metadata.name,HAS:.status.capacity.%[1]s,OFFERS:.status.allocatable.%[1]s'", strings.NewReplacer(".", `\.`).Replace(string(name)))}
	if a != nil && a.Pod != nil {
		title = fmt.Sprintf("see why all %s are unhealthy to %s by its log, and have it look again", name, a.Name())
		commands = append(commands, fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", a.Set.Namespace, a.Pod.Name))
		if name != kvm { // which it looks for all the time
			again = a.Pods
			commands = append(commands, fmt.Sprintf("kubectl -n %s rollout restart daemonset %s  # its pods look, and register, when they start; who runs with such a device keeps it", a.Set.Namespace, a.Set.Name))
		}
	}
	if name == kvm {
		title = "give the nodes hardware virtualization (/dev/kvm), or have KubeVirt emulate it"
		commands = append(commands, "# on the machine: ls -l /dev/kvm; modprobe kvm_intel or kvm_amd; a node that is a virtual machine needs nested virtualization from what runs it",
			`kubectl get kubevirts -A  # then, slow and for trials only: kubectl -n NAMESPACE patch kubevirt NAME --type=merge -p '{"spec":{"configuration":{"developerConfiguration":{"useEmulation":true}}}}'`)
	}
	ch := edit.LookAt(diagnosis.Unknown, title, onMachine, commands...)
	if ch.Drained = again; len(again) > 0 {
		ch.Risk = diagnosis.LowRisk
	}
	return ch
}
