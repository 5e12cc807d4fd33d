package causes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// invalidGPURequest: validation refuses the next pod, for devices cannot be
// overcommitted or cut. A template is held to the same, so on a live cluster it is the
// default of a LimitRange that made the pod so (a least without a most defaults the
// request and no limit), or a webhook, and only the refusal tells of that.
var invalidGPURequest = PodRule{
	ID:      diagnosis.InvalidGPURequest,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.Next() == nil {
			return nil
		}
		var says []string
		var evidence []diagnosis.Evidence
		owner := c.Refusals[0].Owner
		for _, bad := range InvalidRequests(c.Next()) {
			says = append(says, bad.Says())
			evidence = append(evidence, diagnosis.Evidence{Ref: objectRef(owner.Kind, owner.Namespace, owner.Name), Fact: "its pods: " + bad.Says()})
			evidence = append(evidence, c.defaulted(bad)...)
		}
		if len(says) > 0 {
			return c.told(diagnosis.Proven, strings.Join(says, "; "), evidence)
		}
		for _, phrase := range []string{"Limit must be set for non overcommitable resources", "must be equal to nvidia.com/"} {
			if strings.Contains(c.refusedSays(), phrase) {
				return c.told(diagnosis.Possible, "something changes its pods, and the API server said: "+view.Cut(c.refusedSays(), 160), nil)
			}
		}
		return nil
	},
}

// zeroGPURequest: the pod asks for none of a device, which the API server takes: it
// will run without. It keeps the pod from nothing, and is seldom what was meant.
var zeroGPURequest = PodRule{ID: diagnosis.InvalidGPURequest, Aside: true, Tell: func(c *Case) *finding {
	var names []string
	for _, k := range c.Pod.Spec.Containers {
		for name, q := range k.Resources.Limits {
			if IsExtended(name) && q.IsZero() && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &finding{certainty: diagnosis.Proven, says: "zero was asked of " + strings.Join(names, ", ") + ": the pod would run without", evidence: []diagnosis.Evidence{{Ref: c.podRef(), Fact: "limits: 0 of " + strings.Join(names, ", ")}}}
}}

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

// defaulted names the LimitRanges that filled in what the template does not say.
func (c *Case) defaulted(v InvalidRequest) []diagnosis.Evidence {
	spec := c.Cluster.Template(c.Incident.Workload)
	if spec == nil {
		return nil
	}
	for _, k := range spec.Containers {
		_, requested := k.Resources.Requests[v.Resource]
		_, limited := k.Resources.Limits[v.Resource]
		if k.Name == v.Container && (requested || limited) {
			return nil // its own
		}
	}
	var out []diagnosis.Evidence
	for _, lr := range c.Cluster.State.LimitRanges {
		for _, item := range lr.Spec.Limits {
			request, ok := item.DefaultRequest[v.Resource]
			if !ok {
				request, ok = item.Min[v.Resource] // as the API server completes it
			}
			if ok && lr.Namespace == c.Next().Namespace && item.Type == corev1.LimitTypeContainer {
				out = append(out, diagnosis.Evidence{Ref: objectRef("LimitRange", lr.Namespace, lr.Name), Fact: fmt.Sprintf("makes %s %s the default request", request.String(), v.Resource)})
			}
		}
	}
	return out
}
