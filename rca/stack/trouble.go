package stack

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Trouble is what keeps a pod, of the stack or not, from being Ready, in its own words; false where
// nothing does.
func (s *Stack) Trouble(p *corev1.Pod) (says string, evidence diagnosis.Evidence, is bool) {
	return s.kit.Trouble(p)
}

// AllInTrouble is what is the matter with the first of some pods of which one is enough; false where one of them is
// Ready, or there is none.
func (s *Stack) AllInTrouble(pods []*corev1.Pod) (p *corev1.Pod, says string, evidence diagnosis.Evidence, are bool) {
	for _, other := range pods {
		words, fact, is := s.Trouble(other)
		if !is {
			return nil, "", diagnosis.Evidence{}, false
		}
		if p == nil {
			p, says, evidence = other, words, fact
		}
	}
	return p, says, evidence, p != nil
}
