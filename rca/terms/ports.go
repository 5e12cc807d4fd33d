package terms

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Taken is a port of the host that the pod asks for and that another pod of the node has.
type Taken struct {
	Port     int32
	Protocol corev1.Protocol
	By       *corev1.Pod
}

// PortTaken is the first such port of a node; nil where nobody is seen to have one.
func PortTaken(pod *corev1.Pod, n *view.Node) *Taken {
	for _, want := range hostPorts(pod) {
		for _, p := range n.Pods {
			if view.Ended(p) {
				continue
			}
			for _, has := range hostPorts(p) {
				if has.HostPort == want.HostPort && protocol(has) == protocol(want) && sameAddress(has.HostIP, want.HostIP) {
					return &Taken{Port: want.HostPort, Protocol: protocol(want), By: p}
				}
			}
		}
	}
	return nil
}

// Tell says whose the port is.
func (t *Taken) Tell(n *view.Node) *view.Finding {
	return view.Found(diagnosis.Proven, fmt.Sprintf("its host port %d/%s is taken there", t.Port, t.Protocol),
		diagnosis.Fact(view.PodRef(t.By), fmt.Sprintf("has host port %d/%s on %s", t.Port, t.Protocol, n.Name), diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), diagnosis.That("spec.containers", "", diagnosis.Contains, fmt.Sprint(t.Port))))
}

// hostPorts are the ports of the host that a pod's containers ask for, as the NodePorts plugin
// counts them: those of sidecars too.
func hostPorts(p *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	of := func(k *corev1.Container) {
		for _, port := range k.Ports {
			if port.HostPort > 0 {
				out = append(out, port)
			}
		}
	}
	for i := range p.Spec.Containers {
		of(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if r := p.Spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			of(&p.Spec.InitContainers[i])
		}
	}
	return out
}

func protocol(p corev1.ContainerPort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

// sameAddress: who names none has the port on all of the host's addresses.
func sameAddress(a, b string) bool {
	const all = "0.0.0.0"
	a, b = cmp.Or(a, all), cmp.Or(b, all)
	return a == b || a == all || b == all
}
