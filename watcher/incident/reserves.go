package incident

import corev1 "k8s.io/api/core/v1"

// Reserves says whether a pod stands for others: by it KAI, and Run:ai before it, holds a GPU for the pods that share
// that (KAI-Scheduler docs/gpu-sharing; resourceReservation.namespace of its chart). With it they lose their GPU, and
// its binder alone makes it and takes it away.
func Reserves(p *corev1.Pod) bool {
	return p.Namespace == "kai-resource-reservation" || p.Namespace == "runai-reservation"
}

// SharesGPU says whether a pod asks for a share of a GPU, as KAI and Run:ai have it: by an annotation, and no resource
// (KAI-Scheduler docs/gpu-sharing).
func SharesGPU(p *corev1.Pod) bool {
	return p.Annotations["gpu-fraction"] != "" || p.Annotations["gpu-memory"] != ""
}
