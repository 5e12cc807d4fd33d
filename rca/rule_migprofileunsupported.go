package rca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
)

// migProfileUnsupported: the model of the node's GPUs has no such profile.
var migProfileUnsupported = Rule{ID: MIGProfileUnsupported, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	if !ok {
		return nil
	}
	if n.hasProfile(a.profile) {
		return nil
	}
	profiles := n.profiles()
	if len(profiles) == 0 {
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

// hasProfile says whether the node's model has the profile. The grid of its GPUs knows
// without looking through them.
func (n *nodeView) hasProfile(name string) bool {
	if len(n.gpus) > 0 && len(n.gpus) == len(n.geometry.Report.GPUs) {
		if _, has := n.gpus[0].Grid.Profile(name); has {
			return true
		}
	}
	return hasProfile(n.profiles(), name)
}

func hasProfile(profiles []nodeprobe.Profile, name string) bool {
	name = strings.TrimSuffix(name, SharedSuffix)
	return slices.ContainsFunc(profiles, func(p nodeprobe.Profile) bool { return spelled(p.Name) == spelled(name) })
}
