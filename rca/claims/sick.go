package claims

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// seeToGPU is for devices that match, and that their own driver tells are not well: no claim is to be changed for that.
func seeToGPU(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) (edit.Change, bool) {
	for _, a := range c.Claims.Asks {
		sick := c.Claims.SickOn(a, n.Name)
		if len(sick) == 0 || sick[0].Node == "" || len(a.MatchingOn(c.Claims, n.Name)) > 0 {
			continue
		}
		s, plugin := sick[0], driverOn(c, sick[0].Node)
		if s.Unmonitored {
			return unwatched(cause, s, plugin), true
		}
		commands := []string{
			"kubectl get resourceslices --field-selector spec.nodeName=" + s.Node + " -o yaml  # which devices are tainted, and what with",
			fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host sh -c 'nvidia-smi; dmesg | grep -i -e nvrm -e xid | tail -20'", s.Node),
			"kubectl drain " + s.Node + " --ignore-daemonsets --delete-emptydir-data  # before its GPU is reset, or the machine boots or is handed to its vendor",
			"# on the machine: nvidia-smi --gpu-reset -i INDEX, else boot it; a GPU that fails again is to be replaced",
		}
		stops := view.Drained(c.Cluster.Nodes[s.Node])
		if plugin != nil {
			commands, stops = append(commands, edit.EvictCommand(plugin)+"  # the DRA driver's plugin: it looks at the GPUs when it starts, and publishes them without the taint where they are well"), append(stops, plugin)
		}
		ch := edit.LookAt(cause, fmt.Sprintf("see to the GPU of %s (device %s): %s, and has tainted it %s", s.Node, s.ID.Name, s.Says, s.Taints), "whether the GPU is well after a reset only its driver tells", append(commands, "kubectl uncordon "+s.Node)...)
		ch.Risk, ch.Minutes, ch.Drained = diagnosis.HighRisk, 15, stops
		return ch, true
	}
	return edit.Change{}, false
}

// unwatched is for the GPU of which its driver tells nothing: nobody leaves for that.
func unwatched(cause diagnosis.CauseID, s devices.Sick, plugin *corev1.Pod) edit.Change {
	where, unproven := fmt.Sprintf("on %s: %s (device %s)", s.Node, s.Says, s.ID.Name), "why the driver cannot watch it is in its log"
	if plugin == nil {
		return edit.LookAt(cause, "see in the log of the DRA driver's plugin "+where, unproven, "kubectl get pods -A -o wide --field-selector spec.nodeName="+s.Node+"  # which is the driver's plugin; then its log")
	}
	ch := edit.LookAt(cause, "restart the DRA driver's plugin "+where, unproven,
		fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", plugin.Namespace, plugin.Name), edit.EvictCommand(plugin)+"  # its DaemonSet makes it again; running pods keep their devices")
	ch.Risk, ch.Minutes, ch.Drained = diagnosis.LowRisk, 2, []*corev1.Pod{plugin}
	return ch
}
