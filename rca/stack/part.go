package stack

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// part is what one node has of one part of the stack: the part's pod there, and how that is. A
// finding by that pod needs to say no more than what is the matter.
type part struct {
	s   *Stack
	n   *view.Node
	pod *corev1.Pod // nil where the node has none
	parts.Look
}

func (s *Stack) part(n *view.Node, r parts.Role) part {
	p := part{s: s, n: n, pod: s.kit.Pod(n, r)}
	if p.pod != nil {
		p.Look = s.kit.Look(p.pod)
	}
	return p
}

// finding is what is the matter with a link, as the pod shows it.
func (p *part) finding(link Link, state State, cause diagnosis.CauseID, says string) *Finding {
	f := p.s.finding(link, state, cause, says, podRef(p.pod), p.Text(), p.Claims...)
	f.Unready = p.State == parts.Starting && parts.Unready(p.n)
	return f
}
