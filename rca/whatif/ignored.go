package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// OfHAMi are the resources of NVIDIA's GPUs that HAMi counts by itself: no node ever offers them. Its webhook gives who asks
// for them to its own scheduler, in which Kubernetes' filters leave them out (Project-HAMi/HAMi, values.yaml, and
// managedResources with ignoredByScheduler in the scheduler's configuration).
var OfHAMi = []corev1.ResourceName{"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/priority"}

// withoutIgnored leaves what the filters of HAMi's scheduler leave out of a pod that it has.
func withoutIgnored(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
		return pod
	}
	asks := func(k corev1.Container) bool {
		return slices.ContainsFunc(OfHAMi, func(name corev1.ResourceName) bool { _, has := k.Resources.Requests[name]; return has })
	}
	if !slices.ContainsFunc(pod.Spec.Containers, asks) && !slices.ContainsFunc(pod.Spec.InitContainers, asks) {
		return pod
	}
	pod = pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, name := range OfHAMi {
				delete(list[i].Resources.Requests, name)
				delete(list[i].Resources.Limits, name)
			}
		}
	}
	return pod
}
