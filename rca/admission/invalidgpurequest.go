package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/view"
)

// InvalidRequest is a request of devices that validation refuses.
type InvalidRequest struct {
	Container          string
	Init               bool
	Resource           corev1.ResourceName
	request, limit     resource.Quantity
	requested, limited bool
}

// InvalidRequests lists, by container and resource, what validation refuses
// (pkg/apis/core/validation, ValidateContainerResourceRequirements).
func InvalidRequests(pod *corev1.Pod) []InvalidRequest {
	var out []InvalidRequest
	for i, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names := view.SortedNames(k.Resources.Requests)
		for _, name := range view.SortedNames(k.Resources.Limits) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			v := InvalidRequest{Container: k.Name, Init: i >= len(pod.Spec.Containers), Resource: name}
			v.request, v.requested = k.Resources.Requests[name]
			v.limit, v.limited = k.Resources.Limits[name]
			if IsExtended(name) && v.Says() != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

// Says is empty when the request is valid.
func (v InvalidRequest) Says() string {
	who := "container " + v.Container
	switch {
	case !v.limited:
		return fmt.Sprintf("%s requests %s %s and has no limit of it", who, v.request.String(), v.Resource)
	case v.limit.MilliValue()%1000 != 0:
		return fmt.Sprintf("%s asks for %s %s, and a device cannot be cut", who, v.limit.String(), v.Resource)
	case v.requested && v.request.Cmp(v.limit) != 0:
		return fmt.Sprintf("%s requests %s %s and is limited to %s: they must be equal", who, v.request.String(), v.Resource, v.limit.String())
	}
	return ""
}

// Whole is what was probably meant: the limit, in whole devices.
func (v InvalidRequest) Whole() resource.Quantity {
	q := v.limit
	if !v.limited {
		q = v.request
	}
	return *resource.NewQuantity(q.Value(), resource.DecimalSI) // Value rounds up
}
