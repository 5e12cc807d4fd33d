package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// limitRangeViolated: the next pod, with all defaults, is out of a LimitRange's
// bounds.
var limitRangeViolated = PodRule{
	ID:      diagnosis.LimitRangeViolated,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.Next() == nil {
			return nil
		}
		var says []string
		var evidence []diagnosis.Evidence
		for _, v := range admission.Violations(c.Cluster.State, c.Next()) {
			says = append(says, v.Says())
			evidence = append(evidence, diagnosis.Fact(view.ObjectRef("LimitRange", v.Of.Namespace, v.Of.Name), v.Fact, v.Bound))
		}
		if len(says) > 0 {
			return c.told(diagnosis.Proven, strings.Join(says, "; "), evidence)
		}
		return c.unreadSays("LimitRange", "usage per Container is ", "usage per Pod is ", "max limit to request ratio per ")
	},
}
