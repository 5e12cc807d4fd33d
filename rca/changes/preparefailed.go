package changes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

func (c *Bench) lookAtPreparation() []Change {
	p := c.Unprepared[0]
	commands := []string{
		fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name),
		"kubectl get pods -A -o wide --field-selector spec.nodeName=" + p.Spec.NodeName + "  # the driver's plugin has to run here",
	}
	for _, claim := range c.ClaimsOf(p) {
		namespace, name, _ := strings.Cut(claim, "/")
		commands = append(commands, fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml", namespace, name))
	}
	return []Change{c.lookAt(diagnosis.DRAPrepareFailed, "see why the driver on "+p.Spec.NodeName+" cannot prepare the devices", "what the driver on the node would do next is not known", commands...)}
}
