package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelpers "k8s.io/component-helpers/resource"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Violation is one thing that a LimitRange does not allow of a pod.
type Violation struct {
	Of       *corev1.LimitRange
	Who      string // "container main", "the pod"
	Resource corev1.ResourceName
	Fact     string          // what there is, and what is allowed
	Bound    diagnosis.Claim // of it, what is allowed
	// Given is the limit that the range itself writes into containers which state none, and that is less than what this one
	// requests: nothing is out of its bounds, and validation takes no such pod. nil else.
	Given *resource.Quantity
}

// Says is the sentence of the cause.
func (v Violation) Says() string {
	if v.Given != nil {
		return fmt.Sprintf("LimitRange %s makes its pods invalid: %s", v.Of.Name, v.Fact)
	}
	return fmt.Sprintf("LimitRange %s refuses it: %s", v.Of.Name, v.Fact)
}

// Violations holds a pod to the LimitRanges of its namespace, as limitranger does
// (plugin/pkg/admission/limitranger/admission.go, PodValidateLimitFunc; unchanged
// from 1.30 to 1.37).
func Violations(st *cluster.State, pod *corev1.Pod) []Violation {
	var out []Violation
	for _, lr := range st.LimitRanges {
		if lr.Namespace == pod.Namespace {
			out = append(append(out, givenTooLittle(lr, pod)...), violationsOf(lr, pod)...)
		}
	}
	return out
}

func violationsOf(lr *corev1.LimitRange, pod *corev1.Pod) []Violation {
	var out []Violation
	for _, item := range lr.Spec.Limits {
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
				out = append(out, within{lr, item, "container " + k.Name, k.Resources.Requests, k.Resources.Limits}.broken()...)
			}
		case corev1.LimitTypePod:
			opts := resourcehelpers.PodResourcesOptions{ExcludeOverhead: true}
			out = append(out, within{lr, item, "the pod", resourcehelpers.PodRequests(pod, opts), resourcehelpers.PodLimits(pod, opts)}.broken()...)
		}
	}
	return out
}

// givenTooLittle are the containers that request more than the limit which a range gives them: it writes one into each that
// states none, whatever that requests, and validation then refuses the pod ("must be less than or equal to cpu limit of 500m").
// No template says so itself, for that is validated, too.
func givenTooLittle(lr *corev1.LimitRange, pod *corev1.Pod) []Violation {
	var out []Violation
	for _, item := range lr.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for _, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			for _, name := range view.SortedNames(item.Default) {
				given, request, limit := item.Default[name], k.Resources.Requests[name], k.Resources.Limits[name]
				if limit.Cmp(given) == 0 && request.Cmp(limit) > 0 {
					out = append(out, Violation{Of: lr, Who: "container " + k.Name, Resource: name, Given: &given,
						Fact:  fmt.Sprintf("container %s requests %s %s and states no limit, and the one that it is given is %s", k.Name, request.String(), name, given.String()),
						Bound: diagnosis.That("spec.limits[type="+string(item.Type)+"].default", string(name), diagnosis.Is, given.String())})
				}
			}
		}
	}
	return out
}

// within is what one item of a LimitRange allows, and what there is.
type within struct {
	of               *corev1.LimitRange
	item             corev1.LimitRangeItem
	who              string
	requests, limits corev1.ResourceList
}

// broken lists, by resource, what is out of bounds.
func (b within) broken() []Violation {
	var out []Violation
	note := func(bound string, name corev1.ResourceName, format string, args ...any) {
		is := diagnosis.That("spec.limits[type="+string(b.item.Type)+"]."+bound, string(name), diagnosis.Is, fmt.Sprint(args[len(args)-1]))
		out = append(out, Violation{Of: b.of, Who: b.who, Resource: name, Fact: b.who + " " + fmt.Sprintf(format, args...), Bound: is})
	}
	for _, name := range view.SortedNames(b.item.Min) {
		least := b.item.Min[name]
		request, asked := b.requests[name]
		limit, limited := b.limits[name]
		switch {
		case !asked:
			note("min", name, "requests no %s, the least is %s", name, least.String())
		case request.Cmp(least) < 0:
			note("min", name, "requests %s %s, the least is %s", request.String(), name, least.String())
		case limited && limit.Cmp(least) < 0:
			note("min", name, "is limited to %s %s, the least is %s", limit.String(), name, least.String())
		}
	}
	for _, name := range view.SortedNames(b.item.Max) {
		most := b.item.Max[name]
		request := b.requests[name]
		limit, limited := b.limits[name]
		switch {
		case !limited:
			note("max", name, "has no limit of %s, the most is %s", name, most.String())
		case limit.Cmp(most) > 0:
			note("max", name, "is limited to %s %s, the most is %s", limit.String(), name, most.String())
		case request.Cmp(most) > 0:
			note("max", name, "requests %s %s, the most is %s", request.String(), name, most.String())
		}
	}
	for _, name := range view.SortedNames(b.item.MaxLimitRequestRatio) {
		ratio := b.item.MaxLimitRequestRatio[name]
		if !WithinRatio(b.requests[name], b.limits[name], ratio) {
			note("maxLimitRequestRatio", name, "requests %s %s under a limit of %s, the limit may be %s times the request", view.QuantityText(b.requests[name]), name, view.QuantityText(b.limits[name]), ratio.String())
		}
	}
	return out
}

// WithinRatio says whether a limit is at most so many times its request; one that is
// not set, or is zero, never is.
func WithinRatio(request, limit, ratio resource.Quantity) bool {
	if request.IsZero() || limit.IsZero() {
		return false
	}
	return limit.AsApproximateFloat64()/request.AsApproximateFloat64() <= ratio.AsApproximateFloat64()
}

// IsExtended says whether a resource is one of devices: of a domain that is not
// Kubernetes' own (pkg/apis/core/v1/helper, IsExtendedResourceName). Such a resource
// cannot be overcommitted, nor cut into fractions.
func IsExtended(name corev1.ResourceName) bool {
	s := string(name)
	return strings.Contains(s, "/") && !strings.Contains(s, "kubernetes.io/") && !strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix)
}
