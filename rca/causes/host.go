package causes

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// hostResourcesShort claims CPU, memory, pods and ephemeral storage.
var hostResourcesShort = Rule{ID: diagnosis.HostResourcesShort, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "NodeResourcesFit" {
		return nil
	}
	resource, name := b.scarce, string(b.scarce)
	switch resource {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
	default:
		return nil
	}
	free, asked := n.Free(resource), c.Wants[resource]
	fact := fmt.Sprintf("%s of %s free, %s asked", free.String(), name, asked.String())
	claims := append(c.itAsks(resource), diagnosis.That(diagnosis.Free, name, diagnosis.Is, free.String()))
	if resource == corev1.ResourcePods {
		fact = fmt.Sprintf("%d pods run, no more are allowed", len(n.Pods))
		claims = []diagnosis.Claim{diagnosis.That("count(pods)", "", diagnosis.Is, strconv.Itoa(len(n.Pods))), diagnosis.That(diagnosis.Free, name, diagnosis.Is, free.String())}
	}
	says := "not enough " + name
	if resource == corev1.ResourcePods {
		says = "no more pods are allowed on it"
	}
	return &finding{diagnosis.Proven, says, []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact, claims...)}}
}}
