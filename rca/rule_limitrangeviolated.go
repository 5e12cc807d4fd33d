package rca

import (
	"fmt"
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
	changes: func(c *Case) []change {
		if ch, ok := c.keepWithinLimits(); ok {
			return []change{ch}
		}
		ns := c.next().Namespace
		return []change{{kind: Manual, manual: true, risk: "none", until: "its requests are within the LimitRanges of " + ns, title: "bring its requests within the LimitRanges of " + ns,
			commands: []string{fmt.Sprintf("kubectl -n %s describe limitrange", ns)}}}
	},
}
