package changes

import (
	"fmt"

	"github.com/unpend/unpend/rca/admit"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// unsettled is for what the catalogue has no cause for, and of which yet something is known: a
// refusal by the API server, and a resource that stands on no node.
func (c *Bench) unsettled() []edit.Change {
	m := c.MisnamedResource()
	if m == nil {
		return admit.LookAtRefusal(c.Workload)
	}
	return []edit.Change{edit.LookAt(diagnosis.Unknown, fmt.Sprintf("have nodes offer %s, or the pod ask for %s", m.Resource, m.Near), "which of the two is meant, only a person knows",
		fmt.Sprintf("kubectl -n %s get pod %s -o yaml  # who asks: its template, or what injects it (a webhook, by annotations)", c.Pod.Namespace, c.Pod.Name),
		fmt.Sprintf("kubectl get node %s -o jsonpath='{.status.allocatable}'  # what its device plugins announce", m.On))}
}
