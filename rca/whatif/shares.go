package whatif

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// wholeGPU is the resource of which KAI gives shares.
const wholeGPU corev1.ResourceName = "nvidia.com/gpu"

// sharing refuses a node without a GPU to who asks KAI for a share of one: that is asked by annotations alone, which no
// filter of Kubernetes' own reads, and KAI puts such a pod on no other node (KAI-Scheduler docs/gpu-sharing). Which GPU has
// room for a share KAI's own books tell.
type sharing struct{}

var _ fwk.FilterPlugin = sharing{}

// Name is that of the filter which says the same of a whole GPU.
func (sharing) Name() string { return names.NodeResourcesFit }

// Filter refuses a node that announces no GPU.
func (sharing) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if node.GetAllocatable().GetScalarResources()[wholeGPU] > 0 {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Insufficient "+string(wholeGPU))
}

// shares says whether the pod asks KAI, or Run:ai before it, for a share of a GPU, and for no whole one.
func shares(pod *corev1.Pod) bool {
	by := pod.Spec.SchedulerName
	if pod.Annotations["gpu-fraction"] == "" && pod.Annotations["gpu-memory"] == "" || !strings.HasPrefix(by, "kai") && !strings.HasPrefix(by, "runai") {
		return false
	}
	for _, c := range pod.Spec.Containers {
		if _, whole := c.Resources.Requests[wholeGPU]; whole {
			return false
		}
	}
	return true
}
