package rca

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/unpend/unpend/rca/whatif"
)

const (
	wholeGPU  = "nvidia.com/gpu"
	migPrefix = "nvidia.com/mig-"
)

// ask is a request of one pod for a GPU resource.
type ask struct {
	resource corev1.ResourceName
	profile  string // of a MIG request, as the device plugin spells it; empty for whole GPUs
	count    int64
}

// asksOf lists what a pod asks of GPUs, by resource name.
func asksOf(pod *corev1.Pod) []ask { return asksIn(podRequests(pod)) }

func asksIn(requests corev1.ResourceList) []ask {
	var out []ask
	for name, q := range requests {
		n := string(name)
		switch {
		case q.IsZero():
		case strings.HasPrefix(n, migPrefix):
			out = append(out, ask{name, strings.TrimPrefix(n, migPrefix), q.Value()})
		case n == wholeGPU || n == wholeGPU+SharedSuffix:
			out = append(out, ask{name, "", q.Value()})
		}
	}
	slices.SortFunc(out, func(a, b ask) int { return strings.Compare(string(a.resource), string(b.resource)) })
	return out
}

// podRequests is what the scheduler counts for the pod, limits standing in for
// requests that were left out (the API server's defaulting, which dumps of
// hand-written manifests lack).
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(whatif.WithDefaults(pod), resource.PodResourcesOptions{})
}

// isGPU says whether a resource is one of whole GPUs or MIG devices.
func isGPU(name corev1.ResourceName) bool {
	return name == wholeGPU || name == wholeGPU+SharedSuffix || strings.HasPrefix(string(name), migPrefix)
}

func (a ask) short() string {
	if a.profile != "" {
		return a.profile
	}
	return "gpu"
}
