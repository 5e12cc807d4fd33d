package rca

import (
	"fmt"
	"slices"
	"strconv"
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
	says := fmt.Sprintf("%s has no profile %s", n.product(), a.profile)
	if near := n.nearestProfile(a.profile); near != "" {
		says += "; the nearest is " + near
	}
	return &finding{certainty, says, []Evidence{{ref, n.product() + " has " + strings.Join(names, ", ")}}}
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

// nearestProfile is what the node's model has instead of a profile that it has not, as its
// driver spells it: of as many compute slices and the same attributes, if it has any such,
// with the nearest memory, of two the larger. Names move with model and driver. Empty where
// there is none of as many compute slices.
func (n *nodeView) nearestProfile(name string) string {
	compute, memory, with, ok := readProfile(spelled(strings.TrimSuffix(name, SharedSuffix)))
	if !ok {
		return ""
	}
	near, best := "", [3]int{}
	for _, p := range n.profiles() {
		_, has, attributes, ok := readProfile(spelled(p.Name))
		if !ok || p.ComputeSlices != compute {
			continue
		}
		far := [3]int{rank(attributes == with), abs(has - memory), -has}
		if near == "" || slices.Compare(far[:], best[:]) < 0 {
			near, best = p.Name, far
		}
	}
	return near
}

// readProfile reads a name such as 1g.10gb.me.
func readProfile(name string) (compute, memory int, attributes string, ok bool) {
	slices, rest, ok := strings.Cut(name, "g.")
	size, attributes, sized := strings.Cut(rest, "gb")
	compute, err := strconv.Atoi(slices)
	memory, wrong := strconv.Atoi(size)
	return compute, memory, attributes, ok && sized && err == nil && wrong == nil && compute > 0 && memory > 0
}
