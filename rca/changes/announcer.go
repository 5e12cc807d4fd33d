package changes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// onMachine is why nothing that is done about a device plugin's devices can be tried.
const onMachine = "what a device plugin finds on its machine is in no object"

// lookAtAnnouncer is for the device plugin that is there for a resource and has announced none: it does not work, runs
// nowhere, or finds no device where it runs.
func lookAtAnnouncer(c *Bench, a *causes.Announcer, name corev1.ResourceName) edit.Change {
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
	if n := c.Cluster.Nodes[a.Pod.Spec.NodeName]; n != nil && strings.HasPrefix(string(name), "aws.amazon.com/neuron") && n.Labels["eks.amazonaws.com/nodegroup"] != "" {
		commands = append(commands, "aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name "+n.Labels["eks.amazonaws.com/nodegroup"]+" --query nodegroup.amiType  # AL2023_x86_64_NEURON has Neuron's driver (AL2_x86_64_GPU had); another type is for another group: a group keeps its own")
	}
	return edit.LookAt(diagnosis.Unknown, title, onMachine, commands...)
}

// kvm is what KubeVirt's own device plugin gives virtual machines: the processor's virtualization.
const kvm = "devices.kubevirt.io/kvm"

// seeToUnhealthy is for devices of which none is healthy on any node.
func seeToUnhealthy(c *Bench, name corev1.ResourceName) edit.Change {
	a := causes.AnnouncerOf(c.Case, name)
	title := fmt.Sprintf("see why all %s of the nodes are unhealthy to the device plugin that has announced it", name)
	commands := []string{fmt.Sprintf("kubectl get nodes -o custom-columns='NAME:.metadata.name,HAS:.status.capacity.%[1]s,OFFERS:.status.allocatable.%[1]s'", strings.NewReplacer(".", `\.`).Replace(string(name)))}
	if a != nil && a.Pod != nil {
		title = fmt.Sprintf("see why all %s are unhealthy to %s by its log, and have it look again", name, a.Name())
		commands = append(commands, fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", a.Set.Namespace, a.Pod.Name),
			fmt.Sprintf("kubectl -n %s rollout restart daemonset %s  # its pods look, and register, when they start; who runs with such a device keeps it", a.Set.Namespace, a.Set.Name))
	}
	if name == kvm {
		title = "give the nodes hardware virtualization (/dev/kvm), or have KubeVirt emulate it"
		commands = append(commands, "# on the machine: ls -l /dev/kvm; modprobe kvm_intel or kvm_amd; a node that is a virtual machine needs nested virtualization from what runs it",
			`kubectl get kubevirts -A  # then, slow and for trials only: kubectl -n NAMESPACE patch kubevirt NAME --type=merge -p '{"spec":{"configuration":{"developerConfiguration":{"useEmulation":true}}}}'`)
	}
	return edit.LookAt(diagnosis.Unknown, title, onMachine, commands...)
}
