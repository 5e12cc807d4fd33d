package mend

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/view"
)

// LayOut is Configure for a node that is not laid out as is asked; where no MIG manager sees to it and a GPU of it is
// certain to be in nobody's hands, a person lays that one out.
func LayOut(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	out := Configure(c, n, cause)
	plugin := n.PluginPod()
	if !layouts.ByHand(n) || len(c.Cluster.State.ClusterPolicies) > 0 || plugin == nil || !layouts.OffersProfiles(n) {
		return out
	}
	for _, a := range c.Asks {
		counts, counted := n.CountsFor(a)
		_, had := n.Status.Capacity[a.Resource]
		switch {
		case a.Profile == "" || n.Has(a.Resource, a.Count) || !had && !layouts.HasProfile(n, a.Profile):
			continue
		case len(n.GPUHolders()) > 0 && (!counted || !counts.Fits(a)):
			continue
		}
		out = append(out, layOutByHand(n, cause, a, plugin))
	}
	return out
}

// layOutByHand lays out a GPU that nobody is on, with the profile, and has the device plugin look: the names of the
// layout before stay with the kubelet, at 0.
func layOutByHand(n *view.Node, cause diagnosis.CauseID, a view.Ask, plugin *corev1.Pod) edit.Change {
	host := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi ", n.Name)
	return edit.Change{Kind: diagnosis.RepartitionGPU, Cause: cause, Manual: true, Minutes: 10, Risk: diagnosis.MediumRisk, Drained: []*corev1.Pod{plugin},
		Title: fmt.Sprintf("make %s of a GPU of %s that nobody uses, and have the device plugin look again", a.Each(), n.Name),
		Until: fmt.Sprintf("a GPU of %s is laid out with %s and its device plugin has looked", n.Name, a.Each()),
		Steps: []string{"cordon " + n.Name, "see which GPU has no process on it", "destroy its instances, and make those that are asked", "have the device plugin look: it does when it starts", "uncordon " + n.Name,
			"have that layout made at every start of the machine, for instances do not survive a reboot: by mig-parted's nvidia-mig-manager.service, or by the GPU Operator's MIG manager"},
		Commands: []string{"kubectl cordon " + n.Name,
			host + " # the processes; where a container installs the driver: chroot /host/run/nvidia/driver",
			host + "mig -lgi  # which instances each GPU has",
			host + "mig -i GPU -dci && " + host + "mig -i GPU -dgi  # GPU: the index of one without a process",
			host + "mig -i GPU -cgi " + a.Profile + " -C  # as often as it is asked; what is left of the GPU goes to other profiles",
			edit.EvictCommand(plugin) + "  # the device plugin looks when it starts", "kubectl uncordon " + n.Name},
		Node: offering(corev1.ResourceList{a.Resource: *resource.NewQuantity(a.Count, resource.DecimalSI)})}
}
