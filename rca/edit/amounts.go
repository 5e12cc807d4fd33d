package edit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Amounts are a request and its limit.
type Amounts struct{ Request, Limit resource.Quantity }

// Text says them of a resource.
func (p Amounts) Text(name corev1.ResourceName) string {
	if p.Request.Cmp(p.Limit) == 0 {
		return p.Limit.String() + " " + string(name)
	}
	return fmt.Sprintf("%s to %s %s", p.Request.String(), p.Limit.String(), name)
}

// SetRequests writes requests and limits, by container and resource, into the
// workload's template.
func (c *Workload) SetRequests(title string, sets map[string]map[corev1.ResourceName]Amounts) Change {
	return c.EditContainers(Change{Kind: diagnosis.ChangeRequest, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName()},
		func(containers []corev1.Container) { SetResources(containers, sets) })
}

// SetResources writes them into containers.
func SetResources(containers []corev1.Container, sets map[string]map[corev1.ResourceName]Amounts) {
	for i := range containers {
		r := &containers[i].Resources
		for name, p := range sets[containers[i].Name] {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Requests[name], r.Limits[name] = p.Request, p.Limit
		}
	}
}
