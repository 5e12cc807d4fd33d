package outside

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// StartScheduler is for the pod whose scheduler does not run: it is started, or where the
// default one speaks, that one takes the pod.
func StartScheduler(c *edit.Workload) []edit.Change {
	if c.NotGivenToHAMi() {
		return giveToHAMi(c)
	}
	if c.Queue.Grouped() || c.Queue.SchedulerName() == corev1.DefaultSchedulerName || !c.Queue.Spoken(corev1.DefaultSchedulerName) {
		return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its scheduler runs", Title: fmt.Sprintf("start the scheduler %q", c.Queue.SchedulerName()),
			Commands: []string{"kubectl get pods -A -o wide | grep -i scheduler"}}}
	}
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("schedule %s by %s", c.WorkloadName(), corev1.DefaultSchedulerName),
		Pod: func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }}
	c.EditTemplate(&ch, map[string]any{"schedulerName": corev1.DefaultSchedulerName}, false)
	return []edit.Change{ch}
}

// AskSilent is for the pod of which its scheduler, that places others, has said nothing: what keeps
// it in that queue is in the scheduler's own log.
func AskSilent(c *edit.Workload) []edit.Change {
	if c.Queue.Untaken() == nil {
		return nil
	}
	by := c.Queue.SchedulerName()
	return []edit.Change{edit.LookAt(diagnosis.SchedulerMissing, "see why "+by+" has not looked at it", by+" decides by its own rules, which are not run here",
		"kubectl get pods -A -o wide | grep -i "+by+"  # then its log: is it stuck on pods before this one",
		lookAtWaiting(c, "get")+" -o jsonpath='{.status.conditions}'")}
}

// lookAtWaiting is the command that shows what its scheduler looks at: the pod, or the group of
// pods that are not made yet.
func lookAtWaiting(c *edit.Workload, verb string) string {
	if c.Queue.Grouped() {
		return fmt.Sprintf("kubectl -n %s %s podgroups.scheduling.volcano.sh %s", c.Pod.Namespace, verb, c.Queue.Held.Group)
	}
	return fmt.Sprintf("kubectl -n %s %s pod %s", c.Pod.Namespace, verb, c.Pod.Name)
}
