package outside

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/gangs"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// ownRules is why nothing of that can be tried.
const ownRules = "its controller makes its pods by rules of its own"

// BreakDeadlock is for the workload whose members hold what its others need.
func BreakDeadlock(c *edit.Workload) []edit.Change {
	w, former := c.Incident.Workload, gangs.Former(c.Cluster, c.Pod)
	r, rolls := incident.Roller(c.Pod, c.Cluster.State.Owner)
	if !rolls && (w.Kind == "Deployment" || w.Kind == "DaemonSet") {
		r, rolls = w, true
	}
	if rolls && len(former) == 0 {
		return []edit.Change{oldFirst(c, r)}
	}
	if len(former) > 0 {
		if provider(c) == "" { // a machine is not to be had by a command
			return []edit.Change{stopFormer(c, former)}
		}
		return []edit.Change{stopFormer(c, former), roomForMembers(c)}
	}
	members := c.Cluster.Running(c.Cluster.MemberOf(c.Pod))
	edits := fmt.Sprintf("kubectl -n %s edit %s", w.Namespace, c.WorkloadName())
	return []edit.Change{fewerMembers(c, members, edits), roomForMembers(c),
		unlock(diagnosis.Manual, "stop "+c.WorkloadName()+" until there is room for all of its members", ownRules, members,
			fmt.Sprintf("kubectl -n %s get pods -o wide | grep %s", w.Namespace, view.Cut(w.Name, 63)), edits)}
}

// oldFirst has a rollout stop an old pod before it makes the new one. What owns the Deployment may write its strategy back.
func oldFirst(c *edit.Workload, r incident.Ref) edit.Change {
	name := strings.ToLower(r.Kind) + "/" + r.Name
	title, unproven, field := "have the rollout of "+name+" stop an old pod before it makes a new one", "a person decides whether it may serve with a pod less for a while", "strategy"
	if r.Kind == "DaemonSet" {
		title, unproven, field = "have the rollout of "+name+" stop the old pod of a node before it makes the new one", "a person decides whether each node may be without it for a while", "updateStrategy"
	}
	commands := []string{fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"%s":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'`, r.Namespace, name, field)}
	if c.Incident.Workload != r {
		title += "; " + c.WorkloadName() + " owns it, and may write that back"
		commands = append(commands, fmt.Sprintf("kubectl -n %s edit %s  # where it has a field for the strategy of its pods: there", r.Namespace, c.WorkloadName()))
	}
	return unlock(diagnosis.Manual, title, unproven, c.Cluster.Running(r), commands...)
}

// stopFormer stops the pods of a service's old revision, which its controller keeps until those of the new one are ready.
func stopFormer(c *edit.Workload, former []*corev1.Pod) edit.Change {
	r, ns := view.RevisionOf(c.Pod), c.Incident.Workload.Namespace
	const away = "a person decides whether the service may be away for a while"
	if r.Service == "" {
		return deleteFormer(c, former)
	}
	if r.Kind == "RayService" {
		old := view.RevisionOf(former[0]).Name
		return unlock(diagnosis.Manual, fmt.Sprintf("stop RayCluster %s, the old one of RayService %s, before the new one is ready: nothing serves meanwhile", old, r.Service), away, former,
			fmt.Sprintf("kubectl -n %s get rayclusters,pods -l ray.io/originated-from-cr-name=%s", ns, r.Service),
			fmt.Sprintf("kubectl -n %s delete raycluster %s  # what it serves is away until %s is ready", ns, old, r.Name),
			fmt.Sprintf(`kubectl -n %s patch rayservice %s --type merge -p '{"spec":{"upgradeStrategy":{"type":"None"}}}'  # from then on a change makes no second cluster beside the first`, ns, r.Service))
	}
	return unlock(diagnosis.Manual, "stop the old revision of service "+r.Service+" before the new one is ready", away, former,
		fmt.Sprintf("kubectl -n %s get revisions.serving.knative.dev,pods -l serving.knative.dev/service=%s -L serving.knative.dev/revision", ns, r.Service),
		fmt.Sprintf("kubectl -n %s delete revision.serving.knative.dev OLD  # nothing answers until the new one is ready, and there is no way back to the old", ns))
}

// deleteFormer deletes pods of a StatefulSet's old revision, which it would replace later. Below its partition it makes them again as
// they were: who owns it, such as a LeaderWorkerSet, lowers that once the new ones are ready.
func deleteFormer(c *edit.Workload, former []*corev1.Pod) edit.Change {
	names := make([]string, len(former))
	for i, p := range former {
		names[i] = p.Name
	}
	by, ns, all := metav1.GetControllerOfNoCopy(c.Pod).Name, c.Pod.Namespace, strings.Join(names, " ")
	title := fmt.Sprintf("delete %s of StatefulSet %s: made by its old revision, and replaced only once %s is ready", view.Cut(strings.Join(names, ", "), 80), by, c.Pod.Name)
	return unlock(diagnosis.Manual, title, "a person decides whether they may be away for a while", former,
		fmt.Sprintf("kubectl -n %s get statefulset %s -o jsonpath='{.spec.updateStrategy}'  # pods below its partition are made again by the old revision, until that is lowered", ns, by),
		fmt.Sprintf("kubectl -n %s delete pod %s", ns, all),
		fmt.Sprintf("kubectl -n %s get pods -w -L controller-revision-hash | grep %s", ns, view.Cut(by, 63)))
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
	if p := growable(c); p != nil && nobodyGrows(c) {
		return Growing(diagnosis.WorkloadDeadlock, fmt.Sprintf("give node pool %s %s more by hand for the members of %s that wait", p.name, view.CountOf(p.more(c), "machine"), c.WorkloadName()), p.add(c)...)
	}
	return edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.WorkloadDeadlock, Manual: true, Risk: diagnosis.LowRisk, Title: "add a node for the members of " + c.WorkloadName() + " that wait", Untestable: notThereYet,
		Commands: []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable", "# then scale a node pool with the cloud's or the autoscaler's own command"}}
}
