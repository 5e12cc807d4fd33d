package rca

import "fmt"

func (c *Bench) waitForPreempted() []change {
	leaving := c.preempted()
	return []change{{kind: Wait, victims: leaving, manual: true, risk: NoRisk, minutes: 1, until: podList(leaving) + " is gone",
		title:    "wait until " + podList(leaving) + " is gone",
		commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", leaving[0].Namespace, leaving[0].Name)}}}
}
