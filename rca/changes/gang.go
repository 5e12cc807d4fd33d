package changes

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// GangChanges are what lets the whole gang in.
func (c *Bench) GangChanges(cause diagnosis.CauseID) []edit.Change {
	g := c.Gang
	wait := edit.Change{Kind: diagnosis.Wait, Cause: cause, Manual: true, Risk: diagnosis.NoRisk, Commands: []string{fmt.Sprintf("kubectl -n %s get podgroup.%s/%s -w", c.Pod.Namespace, g.Kind.API, g.Name)}}
	switch {
	case !g.Known:
		wait.Until, wait.Title = "PodGroup "+g.Name+" is there and complete", "wait until PodGroup "+g.Name+" is there and complete"
		return []edit.Change{wait}
	case g.Missing() > 0 && c.rollsOneByOne():
		return []edit.Change{c.makeAtOnce(cause)}
	case g.Overdue(c.Cluster.State.Now) && c.Cluster.State.Unread["Pod"] == "":
		return []edit.Change{c.lookAtMaker(cause)}
	case g.Missing() > 0:
		wait.Until = view.CountOf(g.Missing(), "more member") + " of gang " + g.Name + " exist"
		if g.Missing() == 1 {
			wait.Until += "s"
		}
		wait.Title = "wait until " + wait.Until
		return []edit.Change{wait}
	}
	if len(g.Victims) == 0 {
		wait.Title = fmt.Sprintf("wait until gang %s has room for %s", g.Name, view.CountOf(g.Min-g.Fit, "more member"))
		wait.Untestable = fmt.Sprintf("no evictions were found that make room for the whole gang; %d of %d fit", g.Fit, g.Min)
		return []edit.Change{wait}
	}
	leave := edit.Evict(cause, g.Victims)
	leave.Title = fmt.Sprintf("evict %s so that all of gang %s fit", view.PodList(g.Victims), g.Name)
	if endless := view.Endless(g.Victims); len(endless) > 0 {
		return []edit.Change{leave, edit.UntilStopped(cause, g.Victims, endless, "")}
	}
	wait.Victims, wait.Until = g.Victims, view.PodList(g.Victims)+" ends"
	wait.Title = "wait until " + view.PodList(g.Victims) + " leaves"
	return []edit.Change{leave, wait}
}

// lookAtMaker is for the gang whose other members nobody makes: what makes them may wait for
// those that are there, as MPI's launcher does for its workers.
func (c *Bench) lookAtMaker(cause diagnosis.CauseID) edit.Change {
	g, ns := c.Gang, c.Pod.Namespace
	group := "podgroup." + g.Kind.API + "/" + g.Name
	return edit.Change{Kind: diagnosis.Manual, Cause: cause, Manual: true, Risk: diagnosis.LowRisk, Untestable: "what makes the members decides by rules of its own",
		Title: fmt.Sprintf("see why %s makes no more members of gang %s, or lower its least number from %d to those that begin together", c.WorkloadName(), g.Name, g.Min),
		Commands: []string{fmt.Sprintf("kubectl -n %s describe %s", ns, c.WorkloadName()),
			fmt.Sprintf("kubectl -n %s get %s -o yaml  # %s: %d, and %s made", ns, group, strings.Join(g.Kind.Min, "."), g.Min, view.CountOf(g.Made(), "member")),
			fmt.Sprintf("kubectl -n %s edit %s  # the least number that its scheduling policy gives the gang", ns, c.WorkloadName())}}
}

// rollsOneByOne says whether the gang is of a Deployment that is being rolled: pods of former
// ReplicaSets run, and of the new one no more are made before these are ready.
func (c *Bench) rollsOneByOne() bool {
	w := c.Incident.Workload
	o, known := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	d, is := o.(*appsv1.Deployment)
	if !known || !is || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	mine := metav1.GetControllerOfNoCopy(c.Pod)
	return mine != nil && slices.ContainsFunc(c.Cluster.Running(w), func(p *corev1.Pod) bool {
		by := metav1.GetControllerOfNoCopy(p)
		return by != nil && by.UID != mine.UID
	})
}

// makeAtOnce is for the rollout that makes fewer new pods at once than begin together.
func (c *Bench) makeAtOnce(cause diagnosis.CauseID) edit.Change {
	g, w := c.Gang, c.Incident.Workload
	patch := fmt.Sprintf(`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%d}}}}`, g.Min)
	return edit.Change{Kind: diagnosis.Manual, Cause: cause, Manual: true, Risk: diagnosis.LowRisk, Untestable: "its controller makes its pods by rules of its own",
		Title: fmt.Sprintf("have the rollout of %s make %d new pods at once (maxSurge), as many as begin together", c.WorkloadName(), g.Min),
		Commands: []string{fmt.Sprintf("kubectl -n %s patch %s --type merge -p '%s'  # room for so many beside the old ones is needed", w.Namespace, c.WorkloadName(), patch),
			fmt.Sprintf("kubectl -n %s edit %s  # or a smaller least number of the gang, in the template's annotations", w.Namespace, c.WorkloadName())}}
}
