package stack

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// shutOut: a taint that a person has set keeps what would tell of GPUs off the node, and nothing else
// does, so nobody has looked there: the device plugin itself, or the node feature discovery that it
// goes by. d is the device plugin's DaemonSet, nil where none is made before a GPU is found.
func shutOut(s *Stack, n *view.Node, d *parts.Set) *Finding {
	if d != nil {
		if m := d.Misses(n); len(m.Taints) > 0 && m.Count() == len(m.Taints) {
			return shut(s, n, d, m, PluginOnNode, "may have GPUs that nobody announces: the device plugin")
		}
	}
	sets := s.kit.Sets(parts.Discovery)
	if len(sets) == 0 {
		return nil
	}
	looks := sets[0]
	m := looks.Misses(n)
	if len(m.Taints) == 0 || m.Count() > len(m.Taints) || d != nil && !byLabels(d, n) {
		return nil
	}
	f := shut(s, n, looks, m, Discovery, "may have GPUs that nobody has looked for: node feature discovery")
	if f == nil || d == nil {
		return f
	}
	if kept := d.Misses(n).Taints; len(kept) > 0 { // it would be found, and kept off
		also := s.letOn(n, d, parts.Misses{Taints: kept}, "")
		f.Mends[0].Title += "; " + also.Title
		f.Mends[0].Commands = append(f.Mends[0].Commands, also.Commands[0])
	}
	return f
}

// byLabels says whether all that keeps a DaemonSet from the node, but for taints, are labels that node
// feature discovery, or what goes by it, writes.
func byLabels(d *parts.Set, n *view.Node) bool {
	m := d.Misses(n)
	m.Taints = nil
	return d.Discovered(n, m)
}

// shut tells of it; nil where Kubernetes has set the taint, or who made the cluster for its control plane and other nodes beside that.
func shut(s *Stack, n *view.Node, d *parts.Set, m parts.Misses, link Link, says string) *Finding {
	if !m.ByPeople() && !d.Nowhere(s.w, m) {
		return nil
	}
	f := s.finding(link, Unseen, diagnosis.GPUStackNotOnNode, fmt.Sprintf("%s %s/%s does not run there: %s", says, d.Namespace, d.Name, d.Text(n, m)), n.Ref(), untold, parts.NotLooked())
	f.Certainty = diagnosis.Possible
	f.Evidence = append(f.Evidence, diagnosis.Fact(d.Ref(), d.Text(n, m), d.Claims(n, m)...))
	way := s.letOn(n, d, m, "")
	way.Steps = append(way.Steps, "see on the machine whether it has a GPU", "or take the taint off, where the node need not be kept for some pods")
	way.Unproven = "nothing tells whether the machine of " + n.Name + " has a GPU"
	f.Mends = []Mend{way}
	return f
}
