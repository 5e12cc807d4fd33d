package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
)

// system is for which system the driver's image is to be, where it is NVIDIA's and NVIDIA publishes none for that; empty for
// any other.
func (l *driverLink) system() string {
	for _, k := range l.pod.Spec.Containers {
		if k.Name == l.Where {
			return parts.Unpublished(k.Image)
		}
	}
	return ""
}

// unpublished completes a finding of a driver whose image does not come: no other version has one either.
func (l *driverLink) unpublished(f *Finding, system string) {
	n := l.n
	os := n.Status.NodeInfo.OSImage
	f.Says += fmt.Sprintf("; by its platform support NVIDIA publishes no driver image for %s, in no version", system)
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "image "+os, diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, os)))
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have a driver of the machine's own on " + n.Name + ", and the GPU Operator install none there", Until: f.Mends[0].Until, Risk: diagnosis.LowRisk, Minutes: 20,
		Steps: []string{"install NVIDIA's driver with the system's packages, or take a machine image that has it; or have the node made again with a system that there are driver images for (Ubuntu LTS, RHEL)", "keep the GPU Operator's driver off: its other parts then go by the machine's"}}
	shows, off := "nvidia-smi", l.set(`"enabled":false`)
	mixed := l.others(func(osImage string) bool { return osImage == os })
	if mixed {
		off = fmt.Sprintf("kubectl label node %s %s=pre-installed --overwrite  # this node alone: others have theirs by the GPU Operator", n.Name, DeployDriver)
	}
	switch {
	case strings.HasPrefix(system, "cos"): // NVIDIA's guide to the GPU Operator on GKE
		const at = "/home/kubernetes/bin/nvidia"
		shows = at + "/bin/nvidia-smi"
		m.Title = "have Google's installer bring the driver of " + n.Name + ", and the GPU Operator install none there"
		m.Steps[0] = "Container-Optimized OS takes Google's driver alone: have its installer put it there, and the GPU Operator look for it there"
		if n.Labels[gkeDriver] == "" {
			m.Commands = []string{"kubectl apply -f " + googlesInstaller + "cos/daemonset-preloaded.yaml"}
		}
		place := parts.ReuseOperator(l.s.w, l.pod.Namespace) + "--set driver.enabled=false --set hostPaths.driverInstallDir=" + at + " --set toolkit.installDir=" + at + " --set cdi.enabled=true"
		if mixed { // which hold for every node
			place = "# where the GPU Operator looks for drivers holds for all its nodes, and others have theirs elsewhere: leave this one to GKE's own device plugin (kubectl label node " + n.Name + " " + operands + "=false)"
		}
		m.Commands = append(m.Commands, off, place)
	case strings.HasPrefix(system, "amzn"):
		m.Steps[0] = "have the node made again from an EKS image with NVIDIA's driver (AL2023_x86_64_NVIDIA, AL2_x86_64_GPU), or install the driver on it"
	}
	if len(m.Commands) == 0 {
		m.Commands = []string{off}
	}
	m.Commands = append(m.Commands, "kubectl debug node/"+n.Name+" -it --image=busybox -- chroot /host "+shows+"  # once the machine has a driver", "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")
	f.Mends = []Mend{m}
}

// others says whether the GPU Operator's driver is for machines of another kind, too.
func (l *driverLink) others(same func(osImage string) bool) bool {
	for _, n := range l.s.w.SortedNodes() {
		if !same(n.Status.NodeInfo.OSImage) && slices.ContainsFunc(l.s.kit.Sets(parts.Driver), func(d *parts.Set) bool { return d.Misses(n).None() }) {
			return true
		}
	}
	return false
}
