package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// loosenSpread lists what lets the pod come to a node that its spread constraints leave
// out: not to count nodes where it may not be, the least more of skew that takes it, where
// that can help, and the wish alone. The least comes first, for it is tried first; the
// PodTopologySpread plugin judges each.
func (c *Bench) loosenSpread(n *view.Node) []edit.Change {
	var honoring, raised, wished []corev1.TopologySpreadConstraint
	var texts, names []string
	honorable, raisable, less := true, true, int64(0)
	for i, s := range c.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		skew, ok := c.Spread.Skew(n, i)
		if ok && skew <= s.MaxSkew {
			continue
		}
		if apart, has := c.Spread.Untainted(n, i); !has || apart > s.MaxSkew {
			honorable = false
		}
		honor := s
		honor.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
		honoring = append(honoring, honor)
		if raisable = raisable && ok; ok {
			more := s
			more.MaxSkew = skew
			less += int64(skew - s.MaxSkew)
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
	if honorable && len(honoring) > 0 {
		out = append(out, c.spreadBy("leave nodes whose taints it does not tolerate out of the spread over "+strings.Join(names, ", ")+" (nodeTaintsPolicy Honor)", honoring, 0))
	}
	if raisable && len(raised) > 0 {
		out = append(out, c.spreadBy("raise the skew allowed over "+strings.Join(texts, ", ")+" (less evenly spread)", raised, less))
	}
	if len(wished) > 0 {
		out = append(out, c.spreadBy("wish only, and no longer require, to be spread over "+strings.Join(names, ", "), wished, wishedOnly*int64(len(wished))))
	}
	return out
}

// wishedOnly is how much less evenly pods may be spread without a constraint: no raised skew allows as much.
const wishedOnly = 1 << 40

// spreadBy writes constraints in the place of those that they were made from; less is by how many pods that is less evenly.
func (c *Bench) spreadBy(title string, changed []corev1.TopologySpreadConstraint, less int64) edit.Change {
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
				list[i].MaxSkew, list[i].WhenUnsatisfiable, list[i].MinDomains, list[i].NodeTaintsPolicy = s.MaxSkew, s.WhenUnsatisfiable, s.MinDomains, s.NodeTaintsPolicy
			}
			return list, true
		}
		ch := edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.TopologySpreadConflict, Less: less, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName(),
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
