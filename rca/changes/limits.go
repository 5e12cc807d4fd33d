package changes

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// keepWithinLimits asks for the nearest that the LimitRanges allow; false when no
// such request exists, or it would have to be shared out among containers.
func (c *Bench) keepWithinLimits() (edit.Change, bool) {
	over := admission.Violations(c.Cluster.State, c.Refused.Next())
	if len(over) == 0 || len(c.Refused.Next().Spec.InitContainers) > 0 || len(c.Refused.Next().Spec.Containers) != 1 && slices.ContainsFunc(over, func(v admission.Violation) bool { return v.Who == "the pod" }) {
		return edit.Change{}, false
	}
	pod := c.Refused.Next().DeepCopy()
	sets := map[string]map[corev1.ResourceName]pair{}
	var texts []string
	for i := range pod.Spec.Containers {
		k := &pod.Spec.Containers[i]
		sets[k.Name] = map[corev1.ResourceName]pair{}
		for _, v := range over {
			if v.Who != "container "+k.Name && v.Who != "the pod" {
				continue
			}
			p := c.bounded(v.Resource, pair{k.Resources.Requests[v.Resource], k.Resources.Limits[v.Resource]})
			if _, done := sets[k.Name][v.Resource]; !done {
				texts = append(texts, p.text(v.Resource))
			}
			sets[k.Name][v.Resource] = p
		}
	}
	setResources(pod.Spec.Containers, sets)
	if len(admission.Violations(c.Cluster.State, pod)) > 0 {
		return edit.Change{}, false
	}
	return c.setRequests("ask for "+strings.Join(texts, ", ")+" (what the LimitRange allows)", sets), true
}

// pair is a request and its limit.
type pair struct{ request, limit resource.Quantity }

func (p pair) text(name corev1.ResourceName) string {
	if p.request.Cmp(p.limit) == 0 {
		return p.limit.String() + " " + string(name)
	}
	return fmt.Sprintf("%s to %s %s", p.request.String(), p.limit.String(), name)
}

// bounded is the pair nearest to p that all LimitRanges together allow, if any does.
func (c *Bench) bounded(name corev1.ResourceName, p pair) pair {
	var least, most, ratio *resource.Quantity
	for _, lr := range c.Cluster.State.LimitRanges {
		for _, item := range lr.Spec.Limits {
			if lr.Namespace != c.Refused.Next().Namespace || item.Type != corev1.LimitTypeContainer && item.Type != corev1.LimitTypePod {
				continue
			}
			if q, ok := item.Min[name]; ok && (least == nil || q.Cmp(*least) > 0) {
				least = &q
			}
			if q, ok := item.Max[name]; ok && (most == nil || q.Cmp(*most) < 0) {
				most = &q
			}
			if q, ok := item.MaxLimitRequestRatio[name]; ok && (ratio == nil || q.Cmp(*ratio) < 0) {
				ratio = &q
			}
		}
	}
	if p.limit.IsZero() {
		p.limit = p.request
	}
	for _, q := range []*resource.Quantity{&p.request, &p.limit} {
		if least != nil && q.Cmp(*least) < 0 {
			*q = *least
		}
		if most != nil && q.Cmp(*most) > 0 {
			*q = *most
		}
	}
	if ratio != nil && !admission.WithinRatio(p.request, p.limit, *ratio) {
		p.request = *resource.NewMilliQuantity(int64(math.Ceil(float64(p.limit.MilliValue())/ratio.AsApproximateFloat64())), p.limit.Format)
	}
	if admission.IsExtended(name) {
		p.request = p.limit
	}
	return p
}

// setRequests writes requests and limits, by container and resource, into the
// workload's template.
func (c *Bench) setRequests(title string, sets map[string]map[corev1.ResourceName]pair) edit.Change {
	return c.EditContainers(edit.Change{Kind: diagnosis.ChangeRequest, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName()},
		func(containers []corev1.Container) { setResources(containers, sets) })
}

func setResources(containers []corev1.Container, sets map[string]map[corev1.ResourceName]pair) {
	for i := range containers {
		r := &containers[i].Resources
		for name, p := range sets[containers[i].Name] {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Requests[name], r.Limits[name] = p.request, p.limit
		}
	}
}

func (c *Bench) comeWithinLimits() []edit.Change {
	if ch, ok := c.keepWithinLimits(); ok {
		return []edit.Change{ch}
	}
	ns := c.Refused.Next().Namespace
	return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its requests are within the LimitRanges of " + ns, Title: "bring its requests within the LimitRanges of " + ns,
		Commands: []string{fmt.Sprintf("kubectl -n %s describe limitrange", ns)}}}
}
