package layouts

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// LayoutDrift tells: the GPUs are not laid out as the node, or the label of a layout
// that was applied, says, and the request would have what it needs if they were.
// Layouts are compared, never holders.
func LayoutDrift(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	strategy := n.Manager().Strategy
	if !ok || len(n.GPUs) == 0 || strategy == "single" || strategy == "none" {
		return nil
	}
	made := c.ClassOf(n).Made[a.Profile]
	if made > s.Capacity && !Shares(n, a) {
		return view.Found(n.Certainty(), fmt.Sprintf("its GPUs have %s that the node does not advertise", a.Profile),
			diagnosis.Fact(n.ReportRef(), fmt.Sprintf("%d instances of %s exist", made, a.Profile), instances(a.Profile, made)...), n.Registered())
	}
	if wanted := applied(c, n, a); wanted > made && !Shares(n, a) {
		if since, deaf := Unheard(n); deaf {
			if c.State.Now.Sub(since) <= settling {
				return nil // it has hardly been asked
			}
			return view.Found(n.Certainty(), fmt.Sprintf("mig.config %q is asked for since %s, and MIG manager has not acted on it: its success is of the layout before", n.Labels[view.LabelMIGConfig], since.UTC().Format("15:04 MST")),
				diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s was written at %s, after %s=success", view.LabelMIGConfig, n.Labels[view.LabelMIGConfig], diagnosis.Clock(since), view.LabelMIGState), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...),
				diagnosis.Fact(n.ReportRef(), fmt.Sprintf("%d instances of %s exist", made, a.Profile), instances(a.Profile, made)...))
		}
		return view.Found(n.Certainty(), fmt.Sprintf("mig.config %q was applied, its GPUs are laid out otherwise", n.Labels[view.LabelMIGConfig]),
			diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, %s=success makes %d of %s", view.LabelMIGConfig, n.Labels[view.LabelMIGConfig], view.LabelMIGState, wanted, a.Profile), append(wantedClaims(c, n, a), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...)...),
			diagnosis.Fact(n.ReportRef(), fmt.Sprintf("%d instances of %s exist", made, a.Profile), instances(a.Profile, made)...))
	}
	return nil
}

// Unheard is since when the node's label asks for a layout that MIG manager has not begun
// with: what it says was said before. False where that is not so, or cannot be told.
func Unheard(n *view.Node) (since time.Time, is bool) {
	if n.Manager().State != "success" {
		return time.Time{}, false
	}
	since, asked := labelSetAt(n, view.LabelMIGConfig)
	said, known := labelSetAt(n, view.LabelMIGState)
	return since, asked && known && since.After(said)
}

// applied is how many instances of the profile the layout makes that MIG manager
// says it has applied; 0 when it says no such thing.
func applied(w *view.Cluster, n *view.Node, a view.Ask) int64 {
	if n.Manager().State != "success" || w.ConfigOf(n).Source == nil {
		return 0
	}
	count := int64(0)
	for _, named := range w.NamedLayouts(n) {
		if named.Config != n.Manager().Config {
			continue
		}
		for _, layout := range named.Layouts {
			for profile, k := range layout {
				if view.Spelled(profile) == a.Profile {
					count += int64(k)
				}
			}
		}
	}
	return count
}

// Shares says whether one instance is advertised several times, so that counts do
// not compare.
func Shares(n *view.Node, a view.Ask) bool {
	replicas, err := strconv.Atoi(n.Labels[string(a.Resource)+".replicas"])
	return err == nil && replicas > 1
}
