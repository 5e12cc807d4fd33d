package layouts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ProfileUnsupported tells: the model of the node's GPUs has no such profile.
func ProfileUnsupported(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	if !ok {
		return nil
	}
	if HasProfile(n, a.Profile) {
		return nil
	}
	profiles := n.Profiles()
	if len(profiles) == 0 {
		return nil
	}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	certainty, ref := diagnosis.Likely, n.Ref()
	if n.Geometry != nil {
		certainty, ref = diagnosis.Proven, n.ReportRef()
	}
	says := fmt.Sprintf("%s has no profile %s", n.Product(), a.Profile)
	if near := nearestProfile(n, a.Profile); near != "" {
		says += "; the nearest is " + near
	}
	return view.Found(certainty, says, diagnosis.Fact(ref, n.Product()+" has "+strings.Join(names, ", "), profileClaims(n, names, a.Profile)...))
}

// HasProfile says whether the node's model has the profile. The grid of its GPUs knows
// without looking through them.
func HasProfile(n *view.Node, name string) bool {
	if len(n.GPUs) > 0 && len(n.GPUs) == len(n.Geometry.Report.GPUs) {
		if _, has := n.GPUs[0].Grid.Profile(name); has {
			return true
		}
	}
	return view.HasProfile(n.Profiles(), name)
}

// nearestProfile is what the node's model has instead of a profile that it has not, as its
// driver spells it: of as many compute slices and the same attributes, if it has any such,
// with the nearest memory, of two the larger. Names move with model and driver. Empty where
// there is none of as many compute slices.
func nearestProfile(n *view.Node, name string) string {
	compute, memory, with, ok := view.ReadProfile(view.Spelled(strings.TrimSuffix(name, view.SharedSuffix)))
	if !ok {
		return ""
	}
	near, best := "", [3]int{}
	for _, p := range n.Profiles() {
		_, has, attributes, ok := view.ReadProfile(view.Spelled(p.Name))
		if !ok || p.ComputeSlices != compute {
			continue
		}
		far := [3]int{view.Rank(attributes == with), view.Abs(has - memory), -has}
		if near == "" || slices.Compare(far[:], best[:]) < 0 {
			near, best = p.Name, far
		}
	}
	return near
}
