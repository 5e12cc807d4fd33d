package admit

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
func keepWithinLimits(c *edit.Workload) (edit.Change, bool) {
	over := admission.Violations(c.Cluster.State, c.Refused.Next())
	if len(over) == 0 || len(c.Refused.Next().Spec.InitContainers) > 0 || len(c.Refused.Next().Spec.Containers) != 1 && slices.ContainsFunc(over, func(v admission.Violation) bool { return v.Who == "the pod" }) {
		return edit.Change{}, false
	}
	pod := c.Refused.Next().DeepCopy()
	sets := map[string]map[corev1.ResourceName]edit.Amounts{}
	var texts []string
	for i := range pod.Spec.Containers {
		k := &pod.Spec.Containers[i]
		sets[k.Name] = map[corev1.ResourceName]edit.Amounts{}
		for _, v := range over {
			if v.Who != "container "+k.Name && v.Who != "the pod" {
				continue
			}
			p := bounded(c, v.Resource, edit.Amounts{Request: k.Resources.Requests[v.Resource], Limit: k.Resources.Limits[v.Resource]})
			if _, done := sets[k.Name][v.Resource]; !done {
				texts = append(texts, p.Text(v.Resource))
			}
			sets[k.Name][v.Resource] = p
		}
	}
	edit.SetResources(pod.Spec.Containers, sets)
	if len(admission.Violations(c.Cluster.State, pod)) > 0 {
		return edit.Change{}, false
	}
	if v := over[0]; !slices.ContainsFunc(over, func(v admission.Violation) bool { return v.Given == nil }) {
		return c.SetRequests(fmt.Sprintf("state %s as limit, too (where none is stated LimitRange %s gives %s)", strings.Join(texts, ", "), v.Of.Name, v.Given.String()), sets), true
	}
	return c.SetRequests("ask for "+strings.Join(texts, ", ")+" (what the LimitRange allows)", sets), true
}

// bounded is the pair nearest to p that all LimitRanges together allow, if any does.
func bounded(c *edit.Workload, name corev1.ResourceName, p edit.Amounts) edit.Amounts {
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
	if p.Limit.Cmp(p.Request) < 0 { // none, or one by default
		p.Limit = p.Request
	}
	for _, q := range []*resource.Quantity{&p.Request, &p.Limit} {
		if least != nil && q.Cmp(*least) < 0 {
			*q = *least
		}
		if most != nil && q.Cmp(*most) > 0 {
			*q = *most
		}
	}
	if ratio != nil && !admission.WithinRatio(p.Request, p.Limit, *ratio) {
		p.Request = *resource.NewMilliQuantity(int64(math.Ceil(float64(p.Limit.MilliValue())/ratio.AsApproximateFloat64())), p.Limit.Format)
	}
	if admission.IsExtended(name) {
		p.Request = p.Limit
	}
	return p
}

// ComeWithinLimits keeps within the LimitRanges that refuse the pods, or leaves that to a person.
func ComeWithinLimits(c *edit.Workload) []edit.Change {
	if ch, ok := keepWithinLimits(c); ok {
		return []edit.Change{ch}
	}
	ns := c.Refused.Next().Namespace
	return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its requests are within the LimitRanges of " + ns, Title: "bring its requests within the LimitRanges of " + ns,
		Commands: []string{fmt.Sprintf("kubectl -n %s describe limitrange", ns)}}}
}
