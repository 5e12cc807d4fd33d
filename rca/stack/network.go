package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// networkDriver is the init container in which the driver's pod waits for NVIDIA's network driver (MOFED), where
// GPUDirect RDMA is asked of the GPU Operator by spec.driver.rdma (gpu-operator, transformValidationInitContainer).
const networkDriver = "mofed-validation"

// ofedLabel is on the pods by which the Network Operator loads that driver; older ones have a name alone.
const ofedLabel = "nvidia.com/ofed-driver"

// behindNetworkDriver is for the driver that waits for another: nothing of its own is broken, and its log says no more.
func (l *driverLink) behindNetworkDriver(f *Finding) {
	n := l.n
	says, title := "and no pod there loads it", fmt.Sprintf("have NVIDIA's network driver (MOFED) loaded on %s, or do without GPUDirect RDMA", n.Name)
	if i := slices.IndexFunc(n.Pods, loadsMOFED); i >= 0 {
		p := n.Pods[i]
		says, title = fmt.Sprintf("which %s/%s loads", p.Namespace, p.Name), fmt.Sprintf("see why %s/%s has not loaded NVIDIA's network driver (MOFED) on %s", p.Namespace, p.Name, n.Name)
	}
	f.Says = fmt.Sprintf("has no driver: its driver's pod waits for NVIDIA's network driver (MOFED) for %s, %s", view.Age(l.s.since(l.since)), says)
	m := l.mend()
	m.Title = title
	m.Commands = []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=5", l.pod.Namespace, l.pod.Name, networkDriver),
		"kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + " | grep -i mofed  # NVIDIA's Network Operator loads it, by a NicClusterPolicy with ofedDriver",
		l.set(`"rdma":{"enabled":true,"useHostMofed":true}`) + "  # where it is installed on the machine itself",
		l.set(`"rdma":{"enabled":false}`) + "  # without GPUDirect RDMA by nvidia-peermem"}
	f.Mends = []Mend{m}
}

func loadsMOFED(p *corev1.Pod) bool {
	_, labelled := p.Labels[ofedLabel]
	return labelled || strings.HasPrefix(p.Name, "mofed-")
}
