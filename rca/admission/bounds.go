package admission

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Bounds tells of LimitRanges: the next pod, with all defaults, is out of a LimitRange's
// bounds.
func (c *Refused) Bounds() *view.Finding {
	if c.Next() == nil {
		return nil
	}
	var says []string
	var evidence []diagnosis.Evidence
	for _, v := range Violations(c.Cluster.State, c.Next()) {
		says = append(says, v.Says())
		evidence = append(evidence, diagnosis.Fact(view.ObjectRef("LimitRange", v.Of.Namespace, v.Of.Name), v.Fact, append(c.templateClaims(strings.TrimPrefix(strings.TrimPrefix(v.Who, "container "), "the pod"), v.Resource), v.Bound)...))
	}
	if len(says) > 0 {
		return c.told(diagnosis.Proven, strings.Join(says, "; "), evidence)
	}
	return c.unreadSays("LimitRange", "usage per Container is ", "usage per Pod is ", "max limit to request ratio per ")
}
