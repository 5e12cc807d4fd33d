package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// PluginSince is since when the device plugin of the node runs; zero where none is seen to.
func (n *Node) PluginSince() time.Time {
	p := n.PluginPod()
	if p == nil {
		return time.Time{}
	}
	for _, s := range p.Status.ContainerStatuses {
		if strings.Contains(s.Name, PluginName) || strings.HasPrefix(p.Name, HAMiPluginName) && s.Name == "device-plugin" || len(p.Status.ContainerStatuses) == 1 {
			if s.State.Running == nil || !s.Ready {
				return time.Time{}
			}
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// ReadySince is since when the node is Ready; zero where it is not.
func (n *Node) ReadySince() time.Time {
	for _, k := range n.Status.Conditions {
		if k.Type == corev1.NodeReady && k.Status == corev1.ConditionTrue {
			return k.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Since claims when a condition became what it is.
func Since(condition string, at time.Time) diagnosis.Claim {
	return diagnosis.That("status.conditions[type="+condition+"].lastTransitionTime", "", diagnosis.Is, at.UTC().Format(time.RFC3339))
}

// Holding claims what a pod asks, and where it runs.
func Holding(p *corev1.Pod, name corev1.ResourceName, amount string) []diagnosis.Claim {
	return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, amount), diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName)}
}

// EndsAlone says whether the pod is made to come to an end, or is on its way out.
func EndsAlone(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Spec.RestartPolicy == corev1.RestartPolicyNever || p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure || p.Spec.ActiveDeadlineSeconds != nil
}

// Endless are those of the pods that run until somebody stops them: their containers begin again whenever
// they end. The API server writes that of each pod; of one in a dump that does not say it, it is not known.
func Endless(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return EndsAlone(p) || p.Spec.RestartPolicy != corev1.RestartPolicyAlways
	})
}
