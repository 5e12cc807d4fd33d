package changes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	switch {
	case m == nil && c.SchedulerFails() != "":
		return []edit.Change{edit.LookAt(diagnosis.Unknown, "see in the scheduler's log, and among its known errors, why it fails on "+c.Pod.Name+" behind its filters", "what fails behind the filters (scores, volumes, binding) is in no object",
			fmt.Sprintf("kubectl -n %s describe pod %s  # its error; it tries again by itself", c.Pod.Namespace, c.Pod.Name),
			"kubectl -n kube-system logs -l component=kube-scheduler --tail=-1 | grep "+c.Pod.Name,
			"kubectl version  # then the release notes of later patches for that error: an upgrade of kube-scheduler may be the remedy")}
	case m == nil:
		return admit.LookAtRefusal(c.Workload)
	}
	title := fmt.Sprintf("have nodes offer %s, or the pod ask for %s", m.Resource, m.Near)
	if g := c.Growth(); g.Karpenter && g.Told(diagnosis.AutoscalerCannotHelp) != nil {
		title = fmt.Sprintf("have the pod ask for %s, as %s offers, or nodes offer %s, which no machine that Karpenter knows has", m.Near, m.On, m.Resource)
	}
	return []edit.Change{edit.LookAt(diagnosis.Unknown, title, "which of the two is meant, only a person knows",
		fmt.Sprintf("kubectl -n %s get pod %s -o yaml  # who asks: its template, or what injects it (a webhook, by annotations)", c.Pod.Namespace, c.Pod.Name),
		fmt.Sprintf("kubectl get node %s -o jsonpath='{.status.allocatable}'  # what its device plugins announce", m.On))}
}

// freePort is for the pod whose ports of the host another one has. One of a DaemonSet is for its node alone.
func (c *Bench) freePort(n *view.Node) []edit.Change {
	all := terms.PortsTaken(c.Pod, n)
	if len(all) == 0 {
		return nil
	}
	ports := make([]string, len(all))
	for i, t := range all {
		ports[i] = fmt.Sprint(t.Port)
	}
	by, than := all[0].By, strings.Join(ports, " and ")
	const unproven = "who calls the port would have to know the new one"
	if own, other := serviceOf(c.Pod), serviceOf(by); own != "" && other != "" {
		return []edit.Change{c.Once(fmt.Sprintf("give Service %s other ports than %s, or do without Service %s, which has them", own, than, other), func(title string) edit.Change {
			return edit.LookAt(diagnosis.Unknown, title, unproven,
				"kubectl get services -A | grep LoadBalancer  # k3s makes a pod with their ports on every node for each of them",
				editService(own)+"  # spec.ports[].port; or type ClusterIP, where no port of the nodes is needed",
				editService(other)+"  # or this one; k3s brings Traefik itself: --disable=traefik for its servers")
		})}
	}
	elsewhere := ", or a node where nobody has it"
	if owner := metav1.GetControllerOf(c.Pod); owner != nil && owner.Kind == "DaemonSet" {
		elsewhere = ""
	}
	return []edit.Change{c.Once(fmt.Sprintf("give %s another host port than %s%s", c.WorkloadName(), than, elsewhere), func(title string) edit.Change {
		return edit.LookAt(diagnosis.Unknown, title, unproven,
			fmt.Sprintf("kubectl -n %s get pod %s -o wide  # has the port", by.Namespace, by.Name),
			c.EditByHand("ports: another hostPort, or none without hostNetwork; two pods that ask for the same one cannot share a node"))
	})}
}

// serviceOf is the Service of type LoadBalancer that a pod of k3s's or RKE2's ServiceLB stands for, as namespace/name;
// their controller makes its DaemonSet again from it (pkg/cloudprovider/servicelb.go). Empty for other pods.
func serviceOf(p *corev1.Pod) string {
	for label, name := range p.Labels {
		if by, ok := strings.CutSuffix(label, ".cattle.io/svcname"); ok && strings.HasPrefix(by, "svccontroller.") {
			return p.Labels[by+".cattle.io/svcnamespace"] + "/" + name
		}
	}
	return ""
}

func editService(at string) string {
	namespace, name, _ := strings.Cut(at, "/")
	return fmt.Sprintf("kubectl -n %s edit service %s", namespace, name)
}
