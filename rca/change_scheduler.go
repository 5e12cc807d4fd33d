package rca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func (c *Bench) schedulerChanges() []change {
	if c.schedulerName() == corev1.DefaultSchedulerName || !c.spoken(corev1.DefaultSchedulerName) {
		return []change{{kind: Manual, manual: true, risk: NoRisk, until: "its scheduler runs", title: fmt.Sprintf("start the scheduler %q", c.schedulerName()),
			commands: []string{"kubectl get pods -A -o wide | grep -i scheduler"}}}
	}
	ch := change{kind: ChangeRequest, minutes: 1, risk: MediumRisk, title: fmt.Sprintf("schedule %s by %s", c.workloadName(), corev1.DefaultSchedulerName),
		pod: func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }}
	c.editTemplate(&ch, map[string]any{"schedulerName": corev1.DefaultSchedulerName}, false)
	return []change{ch}
}
