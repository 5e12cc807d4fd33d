package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Aligned tells that the kubelet's Topology Manager found no NUMA node with
// all that was asked. Which NUMA node has what is told where the node has a
// NodeResourceTopology; else what it has free by count is all that can be said of it.
func (c *Case) Aligned(fits []string) *view.Finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason != topologyAffinity {
		return nil
	}
	what := "CPUs and memory"
	if asksDevices(c.Pod) {
		what = "devices and CPUs"
	}
	says := "the kubelet could not align its " + what + " on one NUMA node"
	if t := c.Turned(); t != nil && c.AsksNothing() {
		says = fmt.Sprintf("the Topology Manager of the kubelet of %s refuses it, though it asks for no CPU, memory or device that could be aligned: older kubelets do so", t.On) + t.stormSays()
		evidence = append(append(evidence, diagnosis.Fact(c.Ref(), "its containers ask for nothing", diagnosis.That("spec.containers", "", diagnosis.ContainsNot, "requests"))), c.turnedEvidence(t)...)
		if t.Node != nil {
			version := t.Node.Status.NodeInfo.KubeletVersion
			evidence = append(evidence, diagnosis.Fact(t.Node.Ref(), "kubelet "+version, diagnosis.That("status.nodeInfo.kubeletVersion", "", diagnosis.Is, version)))
		}
	} else if t != nil {
		zones, claims := c.zones(t.On)
		says = fmt.Sprintf("the kubelet of %s could not align its %s on one NUMA node", t.On, what)
		if t.Node != nil && slices.Contains(fits, t.On) {
			says += "; by count the node has them free, so it is where they lie"
			if zones == "" {
				says += ", which no object read here tells"
			}
		}
		if zones != "" {
			says += ": by its NodeResourceTopology " + zones
			evidence = append(evidence, diagnosis.Fact("NodeResourceTopology/"+t.On, zones, claims...))
		}
		evidence = append(evidence, c.turnedEvidence(t)...)
		if t.Node != nil {
			cpu, free := t.Node.Status.Allocatable[corev1.ResourceCPU], t.Node.Free(corev1.ResourceCPU)
			evidence = append(evidence, diagnosis.Fact(t.Node.Ref(), fmt.Sprintf("cpu: allocatable %s, %s free by the requests of its pods", cpu.String(), free.String()),
				diagnosis.That(diagnosis.Allocatable, "cpu", diagnosis.Is, cpu.String()), diagnosis.That(diagnosis.Free, "cpu", diagnosis.Is, free.String())))
		}
		if b := c.Beyond(t); b != nil { // who leaves is no help
			says += fmt.Sprintf("; it asks for %s %s together, and the largest NUMA node has %s", b.Asked.String(), b.Resource, b.Most.String())
			asks := diagnosis.Evidence{Ref: c.Ref(), Fact: fmt.Sprintf("asks for %s %s together", b.Asked.String(), b.Resource)}
			if len(c.Pod.Spec.Containers) == 1 { // what one of several asks is not what the pod does
				asks.Claims = c.Claims(diagnosis.That(diagnosis.Requests, string(b.Resource), diagnosis.Is, b.Asked.String()))
			}
			evidence = append(evidence, asks)
		}
		says += t.stormSays()
	}
	return view.Found(diagnosis.Proven, says+c.itSaid(), evidence...)
}

// AsksNothing says whether no container of the pod asks for anything that a kubelet lays on a NUMA node.
func (c *Case) AsksNothing() bool {
	return len(c.Pod.Spec.ResourceClaims) == 0 && !slices.ContainsFunc(slices.Concat(c.Pod.Spec.InitContainers, c.Pod.Spec.Containers), func(k corev1.Container) bool {
		return len(k.Resources.Requests)+len(k.Resources.Limits) > 0
	})
}

// asksDevices says whether a pod asks for what a device plugin or a DRA driver gives it.
func asksDevices(p *corev1.Pod) bool {
	given := func(list corev1.ResourceList) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(list)), func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") })
	}
	return len(p.Spec.ResourceClaims) > 0 || slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(k corev1.Container) bool {
		return given(k.Resources.Requests) || given(k.Resources.Limits)
	})
}
