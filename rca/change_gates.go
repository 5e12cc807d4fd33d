package rca

import "strings"

func (c *Bench) openGates() []change {
	gates := strings.Join(c.gates(), ", ")
	return []change{{kind: Manual, manual: true, risk: NoRisk, until: "the gates " + gates + " are removed", title: "ask who owns the gates " + gates + " to remove them",
		commands: []string{"kubectl -n " + c.Pod.Namespace + " get pod " + c.Pod.Name + " -o jsonpath='{.spec.schedulingGates}'"}}}
}
