package outside

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// ownRules is why nothing of that can be tried.
const ownRules = "its controller makes its pods by rules of its own"

// BreakDeadlock is for the workload whose members hold what its others need.
func BreakDeadlock(c *edit.Workload) []edit.Change {
	w, former := c.Incident.Workload, c.Cluster.FormerRevisions(c.Pod)
	switch {
	case w.Kind == "Deployment":
		return []edit.Change{unlock(diagnosis.Manual, "have the rollout of "+c.WorkloadName()+" stop an old pod before it makes a new one", "a person decides whether it may serve with a pod less for a while", c.Cluster.Running(c.Cluster.MemberOf(c.Pod)),
			fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`, w.Namespace, c.WorkloadName()))}
	case w.Kind == "DaemonSet":
		return []edit.Change{unlock(diagnosis.Manual, "have the rollout of "+c.WorkloadName()+" stop the old pod of a node before it makes the new one", "a person decides whether each node may be without it for a while", c.Cluster.Running(c.Cluster.MemberOf(c.Pod)),
			fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`, w.Namespace, c.WorkloadName()))}
	case len(former) > 0:
		service := view.ServiceOf(c.Pod)
		return []edit.Change{unlock(diagnosis.Manual, "stop the old revision of service "+service+" before the new one is ready", "a person decides whether the service may be away for a while", former,
			fmt.Sprintf("kubectl -n %s get revisions.serving.knative.dev,pods -l serving.knative.dev/service=%s -L serving.knative.dev/revision", w.Namespace, service),
			fmt.Sprintf("kubectl -n %s delete revision.serving.knative.dev OLD  # nothing answers until the new one is ready, and there is no way back to the old", w.Namespace)), roomForMembers(c)}
	}
	members := c.Cluster.Running(c.Cluster.MemberOf(c.Pod))
	edits := fmt.Sprintf("kubectl -n %s edit %s", w.Namespace, c.WorkloadName())
	return []edit.Change{fewerMembers(c, members, edits), roomForMembers(c),
		unlock(diagnosis.Manual, "stop "+c.WorkloadName()+" until there is room for all of its members", ownRules, members,
			fmt.Sprintf("kubectl -n %s get pods -o wide | grep %s", w.Namespace, view.Cut(w.Name, 63)), edits)}
}

func unlock(kind diagnosis.FixKind, title, unproven string, stops []*corev1.Pod, commands ...string) edit.Change {
	return edit.Change{Kind: kind, Cause: diagnosis.WorkloadDeadlock, Manual: true, Risk: diagnosis.MediumRisk, Title: title, Untestable: unproven, Commands: commands, Drained: stops}
}

// fewerMembers has the workload ask for no more than there is.
func fewerMembers(c *edit.Workload, members []*corev1.Pod, edits string) edit.Change {
	what := "CPU and memory"
	if len(c.Asks) > 0 {
		what = string(c.Asks[0].Resource)
	}
	title := fmt.Sprintf("let the members of %s ask for no more %s together than there is: fewer members, or a launcher, head or master without one", c.WorkloadName(), what)
	if view.GroupOf(c.Pod) != "" {
		title = fmt.Sprintf("scale %s down to as many groups as there are %s for, or schedule each group as a gang", c.WorkloadName(), what)
		edits = fmt.Sprintf("kubectl -n %s scale %s --replicas=N  # those with the highest numbers go", c.Incident.Workload.Namespace, c.WorkloadName())
	}
	ch := unlock(diagnosis.ChangeRequest, title, ownRules, members, edits)
	ch.StopsUnknown = true
	return ch
}

// roomForMembers brings a node for those that wait.
func roomForMembers(c *edit.Workload) edit.Change {
	return edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.WorkloadDeadlock, Manual: true, Risk: diagnosis.LowRisk, Title: "add a node for the members of " + c.WorkloadName() + " that wait", Untestable: notThereYet,
		Commands: []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable", "# then scale a node pool with the cloud's or the autoscaler's own command"}}
}
