package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/unpend/unpend/rca/whatif"
)

// WholeGPU is what the device plugin offers GPUs without MIG as, and MIGPrefix precedes the
// profile in the name of MIG instances (k8s-device-plugin, strategy mixed).
const (
	WholeGPU  = "nvidia.com/gpu"
	MIGPrefix = "nvidia.com/mig-"
)

// Ask is a request of one pod for a GPU resource.
type Ask struct {
	Resource corev1.ResourceName
	Profile  string // of a MIG request, as the device plugin spells it; empty for whole GPUs
	Count    int64
}

// Each is a MIG request for people: the profile, and how many where it is not one.
func (a Ask) Each() string {
	if a.Count == 1 {
		return a.Profile
	}
	return fmt.Sprintf("%d × %s", a.Count, a.Profile)
}

// AsksOf lists what a pod asks of GPUs, by resource name.
func AsksOf(pod *corev1.Pod) []Ask { return asksIn(PodRequests(pod)) }

func asksIn(requests corev1.ResourceList) []Ask {
	var out []Ask
	for name, q := range requests {
		n := string(name)
		switch {
		case q.IsZero():
		case strings.HasPrefix(n, MIGPrefix):
			out = append(out, Ask{name, strings.TrimPrefix(n, MIGPrefix), q.Value()})
		case n == WholeGPU || n == WholeGPU+SharedSuffix:
			out = append(out, Ask{name, "", q.Value()})
		}
	}
	slices.SortFunc(out, func(a, b Ask) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	return out
}

// HoldsGPU says whether asksIn lists any.
func HoldsGPU(requests corev1.ResourceList) bool {
	for name, q := range requests {
		if IsGPU(name) && !q.IsZero() {
			return true
		}
	}
	return false
}

// PodRequests is what the scheduler counts for the pod, limits standing in for
// requests that were left out (the API server's defaulting, which dumps of
// hand-written manifests lack).
//
// It is read only: of most pods it is a container's own list.
func PodRequests(pod *corev1.Pod) corev1.ResourceList {
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

// IsGPU says whether a resource is one of whole GPUs or MIG devices.
func IsGPU(name corev1.ResourceName) bool {
	return name == WholeGPU || name == WholeGPU+SharedSuffix || strings.HasPrefix(string(name), MIGPrefix)
}

// HugePages says whether a resource is memory that a node's kernel has set aside in pages of one size.
func HugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Short is the profile, or gpu: enough for a headline.
func (a Ask) Short() string {
	if a.Profile != "" {
		return a.Profile
	}
	return "gpu"
}

// PodRef is how evidence names a pod.
func PodRef(p *corev1.Pod) string { return "Pod/" + p.Namespace + "/" + p.Name }

// Held begins a sentence about who holds what is asked.
func (a Ask) Held() string {
	if a.Profile != "" {
		return "its " + a.Profile + " instances are"
	}
	return "GPUs are"
}

// Insufficient names the resource of a NodeResourcesFit blocker ("Insufficient
// nvidia.com/gpu", "Too many pods"; noderesources/fit.go, unchanged from 1.30 to
// 1.37).
func Insufficient(b whatif.Blocker) (resource string, ok bool) {
	if b.Reason == "Too many pods" {
		return "pods", true
	}
	return strings.CutPrefix(b.Reason, "Insufficient ")
}

// ObjectRef is how evidence names an object of a namespace.
func ObjectRef(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }
