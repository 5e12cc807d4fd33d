package mend

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Remake is for a node whose MIG instances are gone and that no MIG manager sees to: a person makes them again.
// That its kubelet knows the name of a profile shows that there was one at least; how many there were nothing tells.
func Remake(c *edit.Workload, n *view.Node) edit.Change {
	ch := edit.Change{Kind: diagnosis.RevertMIGConfig, Cause: diagnosis.MIGLayoutDrift, Manual: true, Minutes: 10, Risk: diagnosis.LowRisk, Drained: []*corev1.Pod{n.PluginPod()},
		Title: fmt.Sprintf("make the MIG instances of %s again, as they were", n.Name),
		Until: "the MIG instances of " + n.Name + " are made again and its device plugin has looked",
		Steps: []string{"see that there are none", "make them again", "have the device plugin look", "have that done at every start of the machine: by mig-parted's nvidia-mig-manager.service, or by the GPU Operator's MIG manager"}}
	host := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi mig ", n.Name)
	var profiles []string
	back := corev1.ResourceList{}
	for _, a := range c.Asks {
		if _, had := n.Status.Capacity[a.Resource]; !had || a.Profile == "" {
			continue
		}
		profiles = append(profiles, a.Profile)
		if a.Count == 1 {
			back[a.Resource] = *resource.NewQuantity(1, resource.DecimalSI)
		} else {
			ch.Untestable = fmt.Sprintf("nothing says how many %s %s had", a.Profile, n.Name)
		}
	}
	ch.Commands = []string{host + "-lgi  # none, where they went with the reboot",
		host + "-cgi " + strings.Join(profiles, ",") + " -C  # each as often as it was, and the other profiles that there were",
		edit.EvictCommand(n.PluginPod()) + "  # the device plugin looks when it starts"}
	ch.Node = offering(back)
	if ch.Untestable != "" {
		ch.Node, ch.Until = nil, ""
	}
	return ch
}
