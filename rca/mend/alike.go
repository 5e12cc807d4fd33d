package mend

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Alike is for a node of strategy single that cannot name its GPUs, where no MIG manager sees to it: a label would be read
// by nobody. A person gives all GPUs instances of one profile, or switches MIG off, and the device plugin has to look.
func Alike(c *edit.Workload, n *view.Node) edit.Change {
	plugin := n.PluginPod()
	host := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi ", n.Name)
	ch := edit.Change{Kind: diagnosis.FixMIGConfig, Cause: diagnosis.MIGStrategyMismatch, Manual: true, Minutes: 10, Risk: diagnosis.MediumRisk, Drained: append(n.GPUHolders(), plugin),
		Title: fmt.Sprintf("make MIG instances of one profile on all GPUs of %s, or switch MIG off there, and have the device plugin look again", n.Name),
		Until: fmt.Sprintf("all GPUs of %s are laid out alike, or have MIG off, and its device plugin has looked", n.Name),
		Steps: []string{"see which GPUs have MIG on, and which instances", "make instances of one profile on all of them, or switch MIG off", "have the device plugin look: it does when it starts",
			"have instances made at every start of the machine, for they do not survive a reboot: by mig-parted's nvidia-mig-manager.service, or by the GPU Operator's MIG manager"},
		Commands: []string{host + "--query-gpu=index,mig.mode.current,mig.mode.pending --format=csv  # where a container installs the driver: chroot /host/run/nvidia/driver",
			host + "mig -lgi  # which instances there are", host + "mig -lgip  # the profiles",
			host + "mig -cgi PROFILE,PROFILE -C  # either: of every GPU, as many as go on it; instances of another profile first have to go: mig -dci, then mig -dgi",
			host + "-mig 0  # or: whole GPUs again; no process may be on them, and it may take a reset or a reboot",
			edit.EvictCommand(plugin) + "  # the device plugin looks when it starts"}}
	for _, a := range c.Asks {
		if a.Count > 1 {
			ch.Untestable, ch.Until = fmt.Sprintf("nothing says how many GPUs %s has", n.Name), ""
		}
	}
	if ch.Untestable == "" { // there is one GPU at least, for a product is told
		ch.Node = offering(corev1.ResourceList{view.WholeGPU: *resource.NewQuantity(1, resource.DecimalSI)})
	}
	return ch
}
