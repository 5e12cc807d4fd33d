package changes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// loosenSpread lists what lets the pod come to a node that its spread constraints leave
// out: the least more of skew that takes it, where that can help, and the wish alone. The
// least comes first, for it is tried first; the PodTopologySpread plugin judges both.
func (c *Bench) loosenSpread(n *view.Node) []edit.Change {
	var raised, wished []corev1.TopologySpreadConstraint
	var texts, names []string
	raisable := true
	for i, s := range c.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		skew, ok := c.spreads.skew(n, i)
		if ok && skew <= s.MaxSkew {
			continue
		}
		if raisable = raisable && ok; ok {
			more := s
			more.MaxSkew = skew
			raised = append(raised, more)
			texts = append(texts, fmt.Sprintf("%s from %d to %d", s.TopologyKey, s.MaxSkew, skew))
		}
		wish := s
		wish.WhenUnsatisfiable = corev1.ScheduleAnyway
		wish.MinDomains = nil // only of what is required
		wished = append(wished, wish)
		names = append(names, s.TopologyKey)
	}
	var out []edit.Change
	if raisable && len(raised) > 0 {
		out = append(out, c.spreadBy("raise the skew allowed over "+strings.Join(texts, ", ")+" (less evenly spread)", raised))
	}
	if len(wished) > 0 {
		// Named to be tried after the other: of equal cost the first by title is.
		out = append(out, c.spreadBy("wish only, and no longer require, to be spread over "+strings.Join(names, ", "), wished))
	}
	return out
}

// spreads is how evenly the pods are spread now, by each of the pod's spread constraints.
type spreads struct {
	*causes.Case
	counts map[int]*spreadCount // of the i-th constraint, once asked for
}

// spreadCount is how many pods that a constraint is about are in each domain.
type spreadCount struct {
	pods  map[string]int32
	least int32 // of all domains
	self  int32 // 1: the pod is one of them
}

// skew is how far apart the pod would leave the domains of its i-th constraint if it came
// to the node; false where the node has no domain.
func (c *spreads) skew(n *view.Node, i int) (int32, bool) {
	s := c.Pod.Spec.TopologySpreadConstraints[i]
	here, ok := n.Labels[s.TopologyKey]
	count := c.count(i)
	if !ok || count == nil {
		return 0, false
	}
	there, counted := count.pods[here]
	least, domains := count.least, len(count.pods)
	if !counted {
		least, domains = 0, domains+1
	}
	if s.MinDomains != nil && int32(domains) < *s.MinDomains {
		least = 0
	}
	return there + count.self - least, true
}

// count counts once for a constraint; nil for one that makes no sense.
func (c *spreads) count(i int) *spreadCount {
	if count, known := c.counts[i]; known {
		return count
	}
	s := c.Pod.Spec.TopologySpreadConstraints[i]
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		c.counts[i] = nil
		return nil
	}
	count := &spreadCount{pods: map[string]int32{}}
	for _, n := range c.Cluster.SortedNodes() {
		domain, ok := n.Labels[s.TopologyKey]
		if !ok || !c.over(s, n) {
			continue
		}
		count.pods[domain] += 0
		for _, p := range n.Pods {
			if p.Namespace == c.Pod.Namespace && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
				count.pods[domain]++
			}
		}
	}
	if len(count.pods) > 0 {
		count.least = slices.Min(slices.Collect(maps.Values(count.pods)))
	}
	if selector.Matches(labels.Set(c.Pod.Labels)) {
		count.self = 1
	}
	c.counts[i] = count
	return count
}

// over says whether a node counts for a constraint (podtopologyspread/common.go,
// matchNodeInclusionPolicies): as a rule, where the pod's selector takes it, whatever its
// taints.
func (c *spreads) over(s corev1.TopologySpreadConstraint, n *view.Node) bool {
	if (s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && !c.Labels.Accepts(n) {
		return false
	}
	return s.NodeTaintsPolicy == nil || *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore || len(terms.Untolerated(c.Pod, n.Node)) == 0
}

// spreadBy writes constraints in the place of those that they were made from.
func (c *Bench) spreadBy(title string, changed []corev1.TopologySpreadConstraint) edit.Change {
	return c.Once(title, func(title string) edit.Change {
		respread := func(list []corev1.TopologySpreadConstraint) ([]corev1.TopologySpreadConstraint, bool) {
			list = slices.Clone(list)
			for _, s := range changed {
				i := slices.IndexFunc(list, func(o corev1.TopologySpreadConstraint) bool {
					return o.TopologyKey == s.TopologyKey && o.WhenUnsatisfiable == corev1.DoNotSchedule
				})
				wished := s.WhenUnsatisfiable != corev1.DoNotSchedule && slices.ContainsFunc(list, func(o corev1.TopologySpreadConstraint) bool {
					return o.TopologyKey == s.TopologyKey && o.WhenUnsatisfiable == s.WhenUnsatisfiable
				})
				switch {
				case i < 0:
					return nil, false
				case wished: // the API takes one wish for a key, and it is there
					list = slices.Delete(list, i, i+1)
					continue
				}
				list[i].MaxSkew, list[i].WhenUnsatisfiable, list[i].MinDomains = s.MaxSkew, s.WhenUnsatisfiable, s.MinDomains
			}
			return list, true
		}
		ch := edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.TopologySpreadConflict, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName(),
			Pod: func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints, _ = respread(p.Spec.TopologySpreadConstraints) }}
		list, ok := respread(c.PodSpec().TopologySpreadConstraints)
		if !ok {
			ch.Manual = true // the cluster's own default constraints, or somebody else's
			ch.Commands = []string{fmt.Sprintf("kubectl -n %s edit %s  # the constraints of its pods are not of its template: see who sets them", c.Incident.Workload.Namespace, c.WorkloadName())}
			return ch
		}
		whole := []any{map[string]any{"$patch": "replace"}}
		for _, s := range list {
			whole = append(whole, s)
		}
		c.EditTemplate(&ch, map[string]any{"topologySpreadConstraints": whole}, false)
		return ch
	})
}
