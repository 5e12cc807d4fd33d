package rca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/whatif"
)

// migProfileUnsupported: the model of the node's GPUs has no such profile.
var migProfileUnsupported = Rule{ID: MIGProfileUnsupported, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok {
		return nil
	}
	profiles := n.profiles()
	if len(profiles) == 0 || hasProfile(profiles, a.profile) {
		return nil
	}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	certainty, ref := Likely, n.ref()
	if n.geometry != nil {
		certainty, ref = Proven, n.reportRef()
	}
	return &finding{certainty, fmt.Sprintf("%s has no profile %s", n.product(), a.profile),
		[]Evidence{{ref, n.product() + " has " + strings.Join(names, ", ")}}}
}}

func hasProfile(profiles []nodeprobe.Profile, name string) bool {
	name = strings.TrimSuffix(name, SharedSuffix)
	return slices.ContainsFunc(profiles, func(p nodeprobe.Profile) bool { return spelled(p.Name) == spelled(name) })
}
