package changes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// reportDisk is for the node whose kubelet could not tell the size of its disk, and names none: who leaves it gives
// it none, and a smaller request does not fit either (pkg/kubelet/cm, GetCapacity of ephemeral storage).
func reportDisk(c *Bench, n *view.Node) []edit.Change {
	asked, has := c.Wants[corev1.ResourceEphemeralStorage], n.Status.Allocatable[corev1.ResourceEphemeralStorage]
	if asked.IsZero() || !has.IsZero() {
		return nil
	}
	return []edit.Change{c.Once(fmt.Sprintf("have kubelets report their disk (%s), or %s ask for none of it", corev1.ResourceEphemeralStorage, c.WorkloadName()), func(title string) edit.Change {
		return edit.LookAt(diagnosis.HostResourcesShort, title, "why a kubelet cannot tell the size of its disk is in its log alone",
			"kubectl get nodes -o custom-columns=NAME:.metadata.name,DISK:.status.allocatable.ephemeral-storage,RUNTIME:.status.nodeInfo.containerRuntimeVersion",
			fmt.Sprintf("kubectl describe node %s  # an Event InvalidDiskCapacity; on the machine: df of the kubelet's root and of the runtime's images, then restart the kubelet: it measures when it starts", n.Name),
			c.EditByHand("resources: no "+string(corev1.ResourceEphemeralStorage)))
	})}
}

// largerMachines is for the node that Karpenter takes for large enough for the pod's files, though the node is not: it
// reckons with the disk that it orders, and the kubelet with what the file system and the image leave of that. It makes one
// such machine after the other (aws/karpenter-provider-aws issue 4017).
func largerMachines(c *Bench, n *view.Node) []edit.Change {
	asked, has := c.Wants[corev1.ResourceEphemeralStorage], n.Status.Allocatable[corev1.ResourceEphemeralStorage]
	if asked.IsZero() || has.IsZero() || asked.Cmp(has) <= 0 {
		return nil
	}
	outlook := c.Cluster.Outlook()
	for i := range outlook.Claims {
		k := &outlook.Claims[i]
		counts := k.Capacity[corev1.ResourceEphemeralStorage]
		if k.Node != n.Name || counts.Cmp(asked) < 0 {
			continue
		}
		for p := range outlook.Pools {
			if class := outlook.Pools[p].Class; outlook.Pools[p].Name == k.Pool {
				return []edit.Change{largerDisk(c, n, k.Pool, [2]string{class.Kind, class.Name}, counts.String())}
			}
		}
	}
	return nil
}

// largerDisk has a node class, by kind and name, give the machines of a pool more.
func largerDisk(c *Bench, n *view.Node, pool string, class [2]string, counts string) edit.Change {
	asked, has := c.Wants[corev1.ResourceEphemeralStorage], n.Status.Allocatable[corev1.ResourceEphemeralStorage]
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.HostResourcesShort, Manual: true, Risk: diagnosis.MediumRisk, StopsUnknown: true, Minutes: 10,
		Title:      fmt.Sprintf("have %s %s give machines of NodePool %s a larger disk: Karpenter counts %s on %s, which has %s, and %s is asked", class[0], class[1], pool, counts, n.Name, fmt.Sprintf("%dMi", has.Value()>>20), asked.String()),
		Untestable: "a machine with another disk is not there yet"}
	ch.Commands = []string{fmt.Sprintf("kubectl edit %s %s  # spec.blockDeviceMappings: a volumeSize larger by what images take; or instanceStorePolicy: RAID0, where the machines have disks of their own", strings.ToLower(class[0]), class[1]),
		"kubectl get nodeclaims -l karpenter.sh/nodepool=" + pool + "  # machines that there are Karpenter replaces one by one (drift)"}
	return ch
}
