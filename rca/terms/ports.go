package terms

import (
	"cmp"
	"fmt"
	"strings"

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

// PortsTaken are those ports of a node, each with who is first seen to have it.
func PortsTaken(pod *corev1.Pod, n *view.Node) []Taken {
	var out []Taken
	for _, want := range hostPorts(pod) {
		if by := holder(n, want); by != nil {
			out = append(out, Taken{Port: want.HostPort, Protocol: protocol(want), By: by})
		}
	}
	return out
}

// holder is a pod of the node that has a port; nil where nobody is seen to have it.
func holder(n *view.Node, want corev1.ContainerPort) *corev1.Pod {
	for _, p := range n.Pods {
		if view.Ended(p) {
			continue
		}
		for _, has := range hostPorts(p) {
			if has.HostPort == want.HostPort && protocol(has) == protocol(want) && sameAddress(has.HostIP, want.HostIP) {
				return p
			}
		}
	}
	return nil
}

// TellPorts says whose the ports are.
func TellPorts(all []Taken, n *view.Node) *view.Finding {
	texts, evidence := make([]string, len(all)), make([]diagnosis.Evidence, len(all))
	for i, t := range all {
		texts[i] = fmt.Sprintf("%d/%s", t.Port, t.Protocol)
		evidence[i] = diagnosis.Fact(view.PodRef(t.By), fmt.Sprintf("has host port %s on %s", texts[i], n.Name), diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), diagnosis.That("spec.containers", "", diagnosis.Contains, fmt.Sprint(t.Port)))
	}
	says := "its host port " + texts[0] + " is taken there"
	if len(all) > 1 {
		says = "its host ports " + strings.Join(texts, " and ") + " are taken there"
	}
	return view.Found(diagnosis.Proven, says, evidence...)
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
