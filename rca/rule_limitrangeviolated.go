package rca

import (
	"strings"
)

// limitRangeViolated: the next pod, with all defaults, is out of a LimitRange's
// bounds.
var limitRangeViolated = PodRule{
	ID:      LimitRangeViolated,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.next() == nil {
			return nil
		}
		var says []string
		var evidence []Evidence
		for _, v := range c.violations(c.next()) {
			says = append(says, v.says())
			evidence = append(evidence, Evidence{ref("LimitRange", v.of.Namespace, v.of.Name), v.fact})
		}
		if len(says) > 0 {
			return c.told(Proven, strings.Join(says, "; "), evidence)
		}
		return c.unreadSays("LimitRange", "usage per Container is ", "usage per Pod is ", "max limit to request ratio per ")
	},
}
