package changes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/admit"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
)

// unsettled is for what the catalogue has no cause for, and of which yet something is known: a
// pod that its kubelet does not begin, a refusal by the API server, and a resource that stands on no node.
func (c *Bench) unsettled() []edit.Change {
	if begins := begin(diagnosis.Unknown)(c); len(begins) > 0 {
		return begins
	}
	m, sick := c.MisnamedResource(), causes.AllUnhealthy(c.Case)
	switch {
	case m == nil && sick != "":
		return []edit.Change{seeToUnhealthy(c, sick)}
	case m == nil && c.SchedulerFails() != "":
		if let := c.LetBeBound(diagnosis.Unknown, c.SchedulerFails()); let != nil {
			return []edit.Change{*let}
		}
		return []edit.Change{edit.LookAt(diagnosis.Unknown, "see in the scheduler's log, and among its known errors, why it fails on "+c.Pod.Name+" behind its filters", "what fails behind the filters (scores, volumes, binding) is in no object",
			fmt.Sprintf("kubectl -n %s describe pod %s  # its error; it tries again by itself", c.Pod.Namespace, c.Pod.Name),
			"kubectl -n kube-system logs -l component=kube-scheduler --tail=-1 | grep "+c.Pod.Name,
			"kubectl version  # then the release notes of later patches for that error: an upgrade of kube-scheduler may be the remedy")}
	case m == nil:
		return admit.LookAtRefusal(c.Workload)
	case m.Near == "" && causes.AnnouncerOf(c.Case, m.Resource) != nil:
		return []edit.Change{lookAtAnnouncer(causes.AnnouncerOf(c.Case, m.Resource), m.Resource)}
	case m.Near == "" && causes.OfMachine(c.Case):
		return []edit.Change{permitDevices(c, m.Resource)}
	case m.Near == "":
		// What is left of NVIDIA's names is cards by their own, which its device plugin for virtual machines announces.
		if install := mend.InstallMaker(c.Workload, m.Resource); install != nil && !strings.HasPrefix(string(m.Resource), "nvidia.com/") {
			install.Title += makers.Instead(c.Cluster, m.Resource, c.WorkloadName())
			return []edit.Change{*install}
		}
		return []edit.Change{edit.LookAt(diagnosis.Unknown, fmt.Sprintf("have nodes offer %s, by the device plugin that announces it, or the pod ask for what they offer", m.Resource), "what would announce it is in no object",
			"kubectl get nodes -o custom-columns=NAME:.metadata.name,OFFERS:.status.allocatable",
			fmt.Sprintf("kubectl get daemonsets -A  # the device plugin of %s: is it there, and has it a pod on the nodes that are to offer it?", m.Resource),
			fmt.Sprintf("kubectl -n %s get pod %s -o yaml  # who asks: its template, or what injects it (a webhook, by annotations)", c.Pod.Namespace, c.Pod.Name))}
	}
	title := fmt.Sprintf("have nodes offer %s, or the pod ask for %s", m.Resource, m.Near)
	if g := c.Growth(); g.Karpenter && g.Told(diagnosis.AutoscalerCannotHelp) != nil {
		title = fmt.Sprintf("have the pod ask for %s, as %s offers, or nodes offer %s, which no machine that Karpenter knows has", m.Near, m.On, m.Resource)
	}
	look := edit.LookAt(diagnosis.Unknown, title, "which of the two is meant, only a person knows",
		fmt.Sprintf("kubectl -n %s get pod %s -o yaml  # who asks: its template, or what injects it (a webhook, by annotations)", c.Pod.Namespace, c.Pod.Name),
		fmt.Sprintf("kubectl get node %s -o jsonpath='{.status.allocatable}'  # what its device plugins announce", m.On))
	if view.IsGPU(m.Near) { // a name that is nobody's to choose
		return []edit.Change{c.ChangeRequest(diagnosis.Unknown, fmt.Sprintf("ask %s instead of %s", m.Near, m.Resource), edit.AskOther(m.Resource, m.Near)), look}
	}
	return []edit.Change{look}
}
