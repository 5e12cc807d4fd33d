package stack

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Where GPUDirect RDMA is asked of the GPU Operator (spec.driver.rdma), the driver's pod waits without an
// end for NVIDIA's network driver (MOFED): before v24.3 in an init container of its own, since then in
// its manager, whose environment says so (k8s-driver-manager, waitForMofedDriver).
const (
	networkDriver = "mofed-validation"
	rdmaAsked     = "GPU_DIRECT_RDMA_ENABLED"
)

// awaitsNetworkDriver says whether that is what the driver's pod waits for.
func (l *driverLink) awaitsNetworkDriver() bool {
	d := l.s.kit.SetOf(l.pod)
	return l.Where == networkDriver || l.Where == driverManager && l.State == parts.Waiting && d != nil && slices.ContainsFunc(d.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == driverManager && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == rdmaAsked })
	})
}

// behindNetworkDriver is for the driver that waits for another: nothing of its own is broken, and its log says no more.
func (l *driverLink) behindNetworkDriver(f *Finding) {
	n := l.n
	says, title := "and the Network Operator has no pod there that loads it", fmt.Sprintf("have NVIDIA's network driver (MOFED) loaded on %s, or do without GPUDirect RDMA", n.Name)
	if i := slices.IndexFunc(n.Pods, parts.LoadsMOFED); i >= 0 {
		p := n.Pods[i]
		look := l.s.kit.Look(p)
		says, title = fmt.Sprintf("which %s/%s loads", p.Namespace, p.Name), fmt.Sprintf("see why %s/%s has not loaded NVIDIA's network driver (MOFED) on %s", p.Namespace, p.Name, n.Name)
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(p), look.Text(), look.Claims...))
	}
	f.Says = fmt.Sprintf("has no driver: its driver's pod waits for NVIDIA's network driver (MOFED) for %s, %s", view.Age(l.s.since(l.Since)), says)
	if l.Where == driverManager {
		f.Certainty = diagnosis.Likely // what else its manager may wait for ends by itself
		f.Evidence = append(f.Evidence, diagnosis.Fact(l.s.kit.SetOf(l.pod).Ref(), "its "+driverManager+" has "+rdmaAsked+" in its environment", diagnosis.That("spec.template.spec.initContainers", "", diagnosis.Contains, rdmaAsked)))
	}
	m := l.mend()
	m.Title, m.StopsUnknown = title, true // nodes that have a driver are upgraded to what is written, and GPU pods leave for that
	m.Commands = []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=5", l.pod.Namespace, l.pod.Name, l.Where),
		"kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + " | grep -i mofed  # NVIDIA's Network Operator loads it, by a NicClusterPolicy with ofedDriver",
		l.set(`"rdma":{"enabled":true,"useHostMofed":true}`) + "  # where it is installed on the machine itself",
		l.set(`"rdma":{"enabled":false}`) + "  # without GPUDirect RDMA by nvidia-peermem"}
	f.Mends = []Mend{m}
}
