package rca

import (
	"fmt"
	"strings"
)

func (c *Bench) lookAtRefusal() []change {
	o := c.refusals[0].Owner
	return []change{{kind: Manual, manual: true, risk: NoRisk, until: "the API server takes its pods", title: "look at why its pods are refused",
		commands: []string{fmt.Sprintf("kubectl -n %s describe %s/%s", o.Namespace, strings.ToLower(o.Kind), o.Name)}}}
}
