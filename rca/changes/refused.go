package changes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

func (c *Bench) lookAtRefusal() []Change {
	o := c.Refusals[0].Owner
	return []Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "the API server takes its pods", Title: "look at why its pods are refused",
		Commands: []string{fmt.Sprintf("kubectl -n %s describe %s/%s", o.Namespace, strings.ToLower(o.Kind), o.Name)}}}
}
