package rca

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// invalidGPURequest: validation refuses the next pod, for devices cannot be
// overcommitted or cut. A template is held to the same, so on a live cluster it is the
// default of a LimitRange that made the pod so (a least without a most defaults the
// request and no limit), or a webhook, of which nothing but the refusal tells.
var invalidGPURequest = PodRule{
	ID:      InvalidGPURequest,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.next() == nil {
			return nil
		}
		var says []string
		var evidence []Evidence
		owner := c.refusals[0].Owner
		for _, bad := range invalidRequests(c.next()) {
			says = append(says, bad.says())
			evidence = append(evidence, Evidence{ref(owner.Kind, owner.Namespace, owner.Name), "its pods: " + bad.says()})
			evidence = append(evidence, c.defaulted(bad)...)
		}
		if len(says) > 0 {
			return c.told(Proven, strings.Join(says, "; "), evidence)
		}
		for _, phrase := range []string{"Limit must be set for non overcommitable resources", "must be equal to nvidia.com/"} {
			if strings.Contains(c.refusedSays(), phrase) {
				return c.told(Possible, "something changes its pods, and the API server said: "+cut(c.refusedSays(), 160), nil)
			}
		}
		return nil
	},
}

// zeroGPURequest: the pod asks for none of a device, which the API server takes: it
// will run without. It keeps the pod from nothing, and is seldom what was meant.
var zeroGPURequest = PodRule{ID: InvalidGPURequest, Aside: true, Tell: func(c *Case) *finding {
	var names []string
	for _, k := range c.Pod.Spec.Containers {
		for name, q := range k.Resources.Limits {
			if isExtended(name) && q.IsZero() && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &finding{certainty: Proven, says: "zero was asked of " + strings.Join(names, ", ") + ": the pod would run without", evidence: []Evidence{{c.ref(), "limits: 0 of " + strings.Join(names, ", ")}}}
}}

// invalid is a request of devices that validation refuses.
type invalid struct {
	container          string
	init               bool
	resource           corev1.ResourceName
	request, limit     resource.Quantity
	requested, limited bool
}

// invalidRequests lists, by container and resource, what validation refuses
// (pkg/apis/core/validation, ValidateContainerResourceRequirements).
func invalidRequests(pod *corev1.Pod) []invalid {
	var out []invalid
	for i, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names := sortedNames(k.Resources.Requests)
		for _, name := range sortedNames(k.Resources.Limits) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			v := invalid{container: k.Name, init: i >= len(pod.Spec.Containers), resource: name}
			v.request, v.requested = k.Resources.Requests[name]
			v.limit, v.limited = k.Resources.Limits[name]
			if isExtended(name) && v.says() != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

// says is empty when the request is valid.
func (v invalid) says() string {
	who := "container " + v.container
	switch {
	case !v.limited:
		return fmt.Sprintf("%s requests %s %s and has no limit of it", who, v.request.String(), v.resource)
	case v.limit.MilliValue()%1000 != 0:
		return fmt.Sprintf("%s asks for %s %s, and a device cannot be cut", who, v.limit.String(), v.resource)
	case v.requested && v.request.Cmp(v.limit) != 0:
		return fmt.Sprintf("%s requests %s %s and is limited to %s: they must be equal", who, v.request.String(), v.resource, v.limit.String())
	}
	return ""
}

// whole is what was probably meant: the limit, in whole devices.
func (v invalid) whole() resource.Quantity {
	q := v.limit
	if !v.limited {
		q = v.request
	}
	return *resource.NewQuantity(q.Value(), resource.DecimalSI) // Value rounds up
}

// defaulted names the LimitRanges that filled in what the template does not say.
func (c *Case) defaulted(v invalid) []Evidence {
	spec := c.world.template(c.Incident.Workload)
	if spec == nil {
		return nil
	}
	for _, k := range spec.Containers {
		_, requested := k.Resources.Requests[v.resource]
		_, limited := k.Resources.Limits[v.resource]
		if k.Name == v.container && (requested || limited) {
			return nil // its own
		}
	}
	var out []Evidence
	for _, lr := range c.world.state.LimitRanges {
		for _, item := range lr.Spec.Limits {
			request, ok := item.DefaultRequest[v.resource]
			if !ok {
				request, ok = item.Min[v.resource] // as the API server completes it
			}
			if ok && lr.Namespace == c.next().Namespace && item.Type == corev1.LimitTypeContainer {
				out = append(out, Evidence{ref("LimitRange", lr.Namespace, lr.Name), fmt.Sprintf("makes %s %s the default request", request.String(), v.resource)})
			}
		}
	}
	return out
}
