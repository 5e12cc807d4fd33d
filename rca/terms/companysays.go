package terms

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Tell is what the InterPodAffinity plugin refuses, in its words and in the terms that the node
// does not meet: it judges the pods that run, not labels.
func (a *Company) Tell(n *view.Node, reason string) *view.Finding {
	f := view.Found(diagnosis.Proven, "pod (anti-)affinity rules leave it out", diagnosis.Fact(n.Ref(), reason, a.whereItStands(n)...))
	unmet, broken, texts := a.UnmetTerms(n)
	terms := slices.Concat(pick(TogetherWith(a.Pod), unmet), pick(ApartFrom(a.Pod), broken)) // as the texts
	for i, t := range texts {
		f.Evidence = append(f.Evidence, diagnosis.Fact(a.Ref(), "has to be "+t, a.Claims(diagnosis.That("spec.affinity", "", diagnosis.Is, terms[i].TopologyKey))...))
	}
	if len(texts) > 0 {
		f.Says += ": it has to be " + strings.Join(texts, " and ")
	} else if theirs, evidence := a.theirs(n); len(theirs) > 0 {
		f.Says += ": pods that are there have to be apart from " + strings.Join(theirs, " and ") + ", as it is"
		f.Evidence = append(f.Evidence, evidence...)
	}
	for _, t := range pick(TogetherWith(a.Pod), unmet) {
		if len(a.Cluster.Column(t.TopologyKey).Distinct) == 0 && a.Cluster.State.Unread["Node"] == "" {
			f.Says += "; no node has label " + t.TopologyKey
			f.Evidence = append(f.Evidence, diagnosis.Fact(a.Ref(), "label "+t.TopologyKey+", over which it has to be near others, is on no node", diagnosis.That(diagnosis.Labels, t.TopologyKey, diagnosis.Absent, "").Of("Node/*")))
		}
	}
	if away, _ := a.StandsApart(n); len(away) > 0 {
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "kept apart from "+view.PodList(away), running(away)...))
	}
	return f
}

// theirs are the terms of pods in the way by which these keep apart from the pod, in words: it may have none of its own.
func (a *Company) theirs(n *view.Node) (texts []string, evidence []diagnosis.Evidence) {
	for p, of := range a.minding(n) {
		if text := aboutText(*of); !slices.Contains(texts, text) {
			texts = append(texts, text)
			evidence = append(evidence, diagnosis.Fact(view.PodRef(p), "has to be apart from "+text, diagnosis.That("spec.affinity.podAntiAffinity", "", diagnosis.Contains, of.TopologyKey)))
		}
	}
	return texts, evidence
}

// Minders are the pods in the way by their own rules alone, and these rules in words; none where the pod's own keep it from the
// node, too.
func (a *Company) Minders(n *view.Node) (who []*corev1.Pod, texts []string) {
	if _, _, own := a.UnmetTerms(n); len(own) > 0 {
		return nil, nil
	}
	for p, of := range a.minding(n) {
		if text := aboutText(*of); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if !slices.Contains(who, p) {
			who = append(who, p)
		}
	}
	return who, texts
}

// minding are the pods in the way, with each of their terms that is about the pod.
func (a *Company) minding(n *view.Node) iter.Seq2[*corev1.Pod, *corev1.PodAffinityTerm] {
	return func(yield func(*corev1.Pod, *corev1.PodAffinityTerm) bool) {
		for _, p := range a.InTheWay(n) {
			of := ApartFrom(p)
			for i, t := range a.termsOf(of) {
				if t.about(p, a.Pod) && !yield(p, &of[i]) {
					return
				}
			}
		}
	}
}

// pick are the elements at those places.
func pick[T any](of []T, at []int) []T {
	out := make([]T, len(at))
	for i, n := range at {
		out[i] = of[n]
	}
	return out
}

// whereItStands claims the node's place in every topology that affinities speak of, those of
// the pod and of the pods that are in its way, and where these run.
func (a *Company) whereItStands(n *view.Node) []diagnosis.Claim {
	away := a.InTheWay(n)
	away = away[:min(len(away), mostNamed)]
	terms := slices.Concat(TogetherWith(a.Pod), ApartFrom(a.Pod))
	for _, p := range away {
		terms = append(terms, ApartFrom(p)...)
	}
	var out []diagnosis.Claim
	for _, t := range terms {
		if claim := n.Labelled(t.TopologyKey)[0]; !slices.Contains(out, claim) {
			out = append(out, claim)
		}
	}
	return append(out, running(away)...)
}

// running claims where pods run.
func running(pods []*corev1.Pod) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(pods))
	for i, p := range pods {
		out[i] = diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName).Of(view.PodRef(p))
	}
	return out
}
