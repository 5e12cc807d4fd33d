package rca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// hostResourcesShort claims CPU, memory, pods and ephemeral storage.
var hostResourcesShort = Rule{ID: HostResourcesShort, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "NodeResourcesFit" {
		return nil
	}
	resource, name := b.short, string(b.short)
	switch resource {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
	default:
		return nil
	}
	free, asked := n.free(resource), c.wants[resource]
	fact := fmt.Sprintf("%s of %s free, %s asked", free.String(), name, asked.String())
	if resource == corev1.ResourcePods {
		fact = fmt.Sprintf("%d pods run, no more are allowed", len(n.pods))
	}
	return &finding{Proven, "not enough " + name, []Evidence{{n.ref(), fact}}}
}}
