package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// nameValues is for the pod that is spread over a label of which Karpenter counts machines without it as one more value:
// what the pod's own affinity leaves out it does not count (karpenter, topologygroup.go), and the scheduler does not either.
func nameValues(c *edit.Workload) edit.Change {
	g := c.Growth()
	values := strings.Join(g.Beside, ", ")
	ch := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("have %s require %s to be one of %s: what the pod itself leaves out Karpenter does not count", c.WorkloadName(), g.Over, values))
	ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true // a changed template has its pods made again
	ch.Commands = []string{c.EditByHand(fmt.Sprintf("affinity.nodeAffinity, in each required term: {key: %s, operator: In, values: [%s]}", g.Over, values)),
		"# or a later version of Karpenter's provider, or topologySpreadConstraints: whenUnsatisfiable ScheduleAnyway"}
	return ch
}
