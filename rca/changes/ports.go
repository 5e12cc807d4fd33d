package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

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
	if ch := portsLeft(c, all); ch != nil {
		return ch
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
	if c.IsOwn(diagnosis.WorkloadDeadlock) {
		return nil // it waits for its own old pods, which end once its rollout lets them
	}
	if c.Cluster.WorkloadOf(by) == c.Incident.Workload { // another port in its template is another port in all of its pods
		return []edit.Change{c.Once(fmt.Sprintf("have no host port %s in %s, or a node for each of its pods: no two of them can be on one", than, c.WorkloadName()), func(title string) edit.Change {
			return edit.LookAt(diagnosis.Unknown, title, "who calls the port would have to know another way to it",
				fmt.Sprintf("kubectl -n %s get pod %s -o wide  # of the same workload, has the port", by.Namespace, by.Name),
				c.EditByHand("ports: none with a hostPort, and no hostNetwork, or fewer replicas"))
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

// portsLeft is for ports whose holders are being deleted: they are waited for, unless their time was over long ago.
// nil where one of them stays.
func portsLeft(c *Bench, all []terms.Taken) []edit.Change {
	var leaving []*corev1.Pod
	for _, t := range all {
		switch {
		case t.By.DeletionTimestamp == nil:
			return nil
		case !view.Leaves(t.By, c.Cluster.State.Now):
			return []edit.Change{endOverdue(diagnosis.Unknown, t.By)}
		case !slices.Contains(leaving, t.By):
			leaving = append(leaving, t.By)
		}
	}
	return []edit.Change{waitGone(diagnosis.Unknown, leaving)}
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
