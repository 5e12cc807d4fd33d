package rca

import (
	"fmt"
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

// each is a MIG request for people: the profile, and how many where it is not one.
func (a ask) each() string {
	if a.count == 1 {
		return a.profile
	}
	return fmt.Sprintf("%d × %s", a.count, a.profile)
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

// holdsGPU says whether asksIn lists any.
func holdsGPU(requests corev1.ResourceList) bool {
	for name, q := range requests {
		if isGPU(name) && !q.IsZero() {
			return true
		}
	}
	return false
}

// podRequests is what the scheduler counts for the pod, limits standing in for
// requests that were left out (the API server's defaulting, which dumps of
// hand-written manifests lack).
//
// It is read only: of most pods it is a container's own list.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	if list, sole := soleRequests(&pod.Spec); sole {
		return list
	}
	return resource.PodRequests(whatif.WithDefaults(pod), resource.PodResourcesOptions{})
}

// soleRequests are the requests of a pod's only container, where nothing else counts.
func soleRequests(spec *corev1.PodSpec) (corev1.ResourceList, bool) {
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || spec.Overhead != nil || spec.Resources != nil {
		return nil, false
	}
	r := &spec.Containers[0].Resources
	for name := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			return nil, false
		}
	}
	return r.Requests, r.Requests != nil
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

// podRef is how evidence names a pod.
func podRef(p *corev1.Pod) string { return "Pod/" + p.Namespace + "/" + p.Name }
