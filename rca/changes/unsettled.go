package changes

import (
	"fmt"

	"github.com/unpend/unpend/rca/admit"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
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

// freePort is for the pod whose port of the host another one has.
func (c *Bench) freePort(n *view.Node) []edit.Change {
	t := terms.PortTaken(c.Pod, n)
	if t == nil {
		return nil
	}
	return []edit.Change{c.Once(fmt.Sprintf("give %s another host port than %d, or a node where nobody has it", c.WorkloadName(), t.Port), func(title string) edit.Change {
		return edit.LookAt(diagnosis.Unknown, title, "who calls the port would have to know the new one",
			fmt.Sprintf("kubectl -n %s get pod %s -o wide  # has the port", t.By.Namespace, t.By.Name),
			c.EditByHand("ports: another hostPort, or none without hostNetwork; two pods that ask for the same one cannot share a node"))
	})}
}
