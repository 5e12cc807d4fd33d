package stack

import (
	"fmt"

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

// pull is for a part's pod one of whose images does not come: nothing of it has a log, and to make it again changes nothing.
func (p *part) pull(m *Mend, what string) {
	image, commands := parts.Pull(p.n, p.pod, p.Where)
	m.Title = fmt.Sprintf("let %s pull the image of its %s, or name one that is published", p.n.Name, what)
	m.Steps, m.Commands = []string{"see what the registry answers: an image may have been withdrawn, be private, or be limited to so many pulls"}, commands
	if why, steps, more, ok := parts.Barred(p.pod, image, p.Whole); ok {
		m.Title, m.Steps, m.Commands = fmt.Sprintf("let %s pull the image of its %s: %s", p.n.Name, what, why), steps, append(m.Commands, more...)
	}
	if field := parts.ImageField(p.pod, p.Where, image); field != "" && p.s.policy != "" {
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl get clusterpolicy %s -o jsonpath='{.spec.%s}'  # repository, image, version and imagePullSecrets: another one there, or by a newer GPU Operator", p.s.policy, field))
	}
}
