package changes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// mostWeight is the strongest a preference can be: what is no longer required is still
// what the workload would rather have.
const mostWeight = 100

// resolveAffinity lists what lets the pod come to a node that the affinity of pods keeps
// it from: the pods that stand in its way leave, or it only prefers what it required.
// Each is a guess at what the InterPodAffinity plugin minds; the plugin itself judges it.
func (c *Bench) resolveAffinity(n *view.Node) []edit.Change {
	var out []edit.Change
	victims, movable := c.Company.StandsApart(n)
	if movable && len(victims) > 0 {
		ch := edit.Evict(diagnosis.PodAffinityConflict, victims)
		ch.Kind = diagnosis.MovePods
		ch.Title = "move " + view.PodList(victims) + " off " + n.Name + ", away from what may not be together"
		out = append(out, ch)
	}
	if ch, ok := c.preferAffinity(n); ok {
		out = append(out, ch)
	}
	return append(out, mend.TheirRule(c.Workload, n)...)
}

// preferAffinity makes the terms that the node does not meet, and no others, wishes.
func (c *Bench) preferAffinity(n *view.Node) (edit.Change, bool) {
	unmet, broken, texts := c.Company.UnmetTerms(n)
	if len(texts) == 0 {
		return edit.Change{}, false
	}
	if ch, ofTekton := moveAssistant(c, unmet); ofTekton {
		return ch, true
	}
	if of, given := c.givenTerms(); given {
		return mend.GivenRule(c.Workload, of, strings.Join(texts, " and ")), true
	}
	title := "prefer, and no longer require, to be " + strings.Join(texts, " and ")
	return c.Once(title, func(title string) edit.Change {
		ch := edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.PodAffinityConflict, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName(),
			Pod: func(p *corev1.Pod) { p.Spec.Affinity = preferring(p.Spec.Affinity, unmet, broken) }}
		spec := c.PodSpec()
		c.EditTemplate(&ch, map[string]any{"affinity": affinityPatch(preferring(spec.Affinity, unmet, broken), unmet, broken)}, false)
		return ch
	}), true
}

// givenTerms says whether the pod has terms that what it was made from does not, or the template of
// its workload does no more, and names that: to change the template takes none from its pods.
func (c *Bench) givenTerms() (of string, given bool) {
	differs := func(spec *corev1.PodSpec) bool {
		made := &corev1.Pod{Spec: *spec}
		return len(terms.TogetherWith(made)) != len(terms.TogetherWith(c.Pod)) || len(terms.ApartFrom(made)) != len(terms.ApartFrom(c.Pod))
	}
	if spec, by := c.Cluster.MadeFrom(c.Pod); spec != nil && differs(spec) {
		return strings.ToLower(by.Kind) + "/" + by.Name, true
	}
	return c.WorkloadName(), differs(c.PodSpec())
}

// preferring is the affinity with some terms moved from what is required to what is
// preferred.
func preferring(from *corev1.Affinity, unmet, broken []int) *corev1.Affinity {
	a := from.DeepCopy()
	move := func(required *[]corev1.PodAffinityTerm, preferred *[]corev1.WeightedPodAffinityTerm, which []int) {
		var rest []corev1.PodAffinityTerm
		for i, t := range *required {
			if slices.Contains(which, i) {
				*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: mostWeight, PodAffinityTerm: t})
			} else {
				rest = append(rest, t)
			}
		}
		*required = rest
	}
	if len(unmet) > 0 {
		move(&a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, unmet)
	}
	if len(broken) > 0 {
		move(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, broken)
	}
	return a
}

// affinityPatch writes the lists that have changed; the API takes each as a whole.
func affinityPatch(a *corev1.Affinity, unmet, broken []int) map[string]any {
	lists := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) map[string]any {
		out := map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": nil, "preferredDuringSchedulingIgnoredDuringExecution": preferred}
		if len(required) > 0 {
			out["requiredDuringSchedulingIgnoredDuringExecution"] = required
		}
		return out
	}
	out := map[string]any{}
	if len(unmet) > 0 {
		out["podAffinity"] = lists(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if len(broken) > 0 {
		out["podAntiAffinity"] = lists(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}
