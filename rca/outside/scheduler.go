package outside

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// StartScheduler is for the pod whose scheduler does not run: it is started, or where the
// default one speaks, that one takes the pod.
func StartScheduler(c *edit.Workload) []edit.Change {
	if c.NotGivenToHAMi() {
		return c.GiveToHAMi(diagnosis.SchedulerMissing)
	}
	if down := queues.Down(c.Queue); down != nil {
		return []edit.Change{startAgain(c, down)}
	}
	if p := queues.Runs(c.Queue); p != nil {
		return []edit.Change{lookAtRunner(c, p)}
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

// lookAtRunner is for the scheduler that is there and ready, and has said nothing: it takes nothing in, or schedules by another
// name. YuniKorn puts an application that no queue takes aside, and its pods wait without a word.
func lookAtRunner(c *edit.Workload, p *corev1.Pod) edit.Change {
	by := c.Queue.SchedulerName()
	commands := []string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=100  # what it makes of %s, and by which name it schedules", p.Namespace, p.Name, c.Pod.Name)}
	title := "see why " + p.Namespace + "/" + p.Name + " takes in no pod of schedulerName " + by
	if strings.Contains(by, "yunikorn") {
		queue := "root.default"
		if q := queues.OfYuniKorn(c.Queue); q != "" {
			queue = q
		}
		title = fmt.Sprintf("see that YuniKorn's queue %s exists and lets everybody submit, and what the log of %s/%s says of the application", queue, p.Namespace, p.Name)
		commands = append(commands, fmt.Sprintf("kubectl get configmap -A --field-selector metadata.name=yunikorn-configs -o yaml  # queues.yaml: %s, and submitacl: '*' at root, without which nobody may submit", queue))
	}
	return edit.LookAt(diagnosis.SchedulerMissing, title, by+" decides by its own rules, which are not run here", append(commands, LookAtWaiting(c, "describe"))...)
}

// startAgain is for the scheduler that is there and not ready: its own log says why. Of Volcano's a queue may be the reason.
func startAgain(c *edit.Workload, down *queues.Runner) edit.Change {
	ref := fmt.Sprintf("-n %s", down.Namespace)
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "a pod of " + down.Ref() + " is ready",
		Title: fmt.Sprintf("mend %s, which schedules for %q: %s", down.Ref(), c.Queue.SchedulerName(), down.Why)}
	log := fmt.Sprintf("kubectl %s logs %s --tail=50  # what it may not read (RBAC), or fails on", ref, down.Pod.Name)
	if strings.Contains(down.Why, "ends") {
		log = fmt.Sprintf("kubectl %s logs %s --previous --tail=50  # what it ended with", ref, down.Pod.Name)
	}
	ch.Commands = []string{log, fmt.Sprintf("kubectl %s describe pod %s", ref, down.Pod.Name)}
	if g := queues.Overguaranteed(c.Queue); g != nil {
		ch.Title = fmt.Sprintf("lower the guarantee of Queue %s: %s %s, and all nodes have %s; %s ends where queues are guaranteed more than there is", g.Queue, g.Guarantees.String(), g.Resource, g.Has.String(), down.Ref())
		ch.Commands = append([]string{"kubectl edit queues.scheduling.volcano.sh " + g.Queue + "  # spec.guarantee.resource: no more than there is, of all queues together"}, ch.Commands...)
	}
	return ch
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
		LookAtWaiting(c, "get")+" -o jsonpath='{.status.conditions}'")}
}

// LookAtWaiting is the command that shows what its scheduler looks at: the pod, or the group of
// pods that are not made yet.
func LookAtWaiting(c *edit.Workload, verb string) string {
	if c.Queue.Grouped() {
		return fmt.Sprintf("kubectl -n %s %s podgroups.scheduling.volcano.sh %s", c.Pod.Namespace, verb, c.Queue.Held.Group)
	}
	return fmt.Sprintf("kubectl -n %s %s pod %s", c.Pod.Namespace, verb, c.Pod.Name)
}
