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
	if c.Queue.SchedulerName() == corev1.DefaultSchedulerName || !c.Queue.Spoken(corev1.DefaultSchedulerName) {
		return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its scheduler runs", Title: fmt.Sprintf("start the scheduler %q", c.Queue.SchedulerName()),
			Commands: []string{"kubectl get pods -A -o wide | grep -i scheduler"}}}
	}
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("schedule %s by %s", c.WorkloadName(), corev1.DefaultSchedulerName),
		Pod: func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }}
	c.EditTemplate(&ch, map[string]any{"schedulerName": corev1.DefaultSchedulerName}, false)
	return []edit.Change{ch}
}
