package terms

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/view"
)

// Spread is how evenly pods are spread now, by each of the waiting pod's spread constraints.
type Spread struct {
	view.Subject
	labels *Labels
	counts map[counting]*spreadCount // once asked for
}

// counting is of the i-th constraint; untainted: over those nodes alone whose taints the pod tolerates.
type counting struct {
	i         int
	untainted bool
}

// SpreadOf takes the pod, and what it asks of the labels of nodes.
func SpreadOf(s view.Subject, l *Labels) *Spread {
	return &Spread{s, l, map[counting]*spreadCount{}}
}

// spreadCount is how many pods that a constraint is about are in each domain.
type spreadCount struct {
	pods  map[string]int32
	least int32 // of all domains
	self  int32 // 1: the pod is one of them
}

// Skew is how far apart the pod would leave the domains of its i-th constraint if it came
// to the node; false where the node has no domain.
func (c *Spread) Skew(n *view.Node, i int) (int32, bool) { return c.skew(n, counting{i, false}) }

// Untainted is the same where nodes whose taints the pod does not tolerate were no domain (nodeTaintsPolicy Honor).
func (c *Spread) Untainted(n *view.Node, i int) (int32, bool) { return c.skew(n, counting{i, true}) }

func (c *Spread) skew(n *view.Node, by counting) (int32, bool) {
	i := by.i
	s := c.Pod.Spec.TopologySpreadConstraints[i]
	here, ok := n.Labels[s.TopologyKey]
	count := c.count(by)
	if !ok || count == nil {
		return 0, false
	}
	there, counted := count.pods[here]
	least := count.least
	if !counted || s.MinDomains != nil && int32(len(count.pods)) < *s.MinDomains {
		least = 0
	}
	return there + count.self - least, true
}

// Broken are the constraints that the pod would break on the node, of those that it may not.
func (c *Spread) Broken(n *view.Node) []int {
	var out []int
	for i, s := range c.Pod.Spec.TopologySpreadConstraints {
		if skew, ok := c.Skew(n, i); s.WhenUnsatisfiable == corev1.DoNotSchedule && (!ok || skew > s.MaxSkew) {
			out = append(out, i)
		}
	}
	return out
}

// count counts once for a constraint; nil for one that makes no sense.
func (c *Spread) count(by counting) *spreadCount {
	if count, known := c.counts[by]; known {
		return count
	}
	s := c.Pod.Spec.TopologySpreadConstraints[by.i]
	if by.untainted {
		s.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		c.counts[by] = nil
		return nil
	}
	about := func(of labels.Set) bool {
		return selector.Matches(of) && !slices.ContainsFunc(s.MatchLabelKeys, func(key string) bool {
			value, has := c.Pod.Labels[key]
			return has && of[key] != value
		})
	}
	count := &spreadCount{pods: map[string]int32{}}
	for _, n := range c.Cluster.SortedNodes() {
		domain, ok := n.Labels[s.TopologyKey]
		if !ok || !c.over(s, n) {
			continue
		}
		here := int32(0) // a domain without any counts too
		for _, p := range n.Pods {
			if p.Namespace == c.Pod.Namespace && p.DeletionTimestamp == nil && about(p.Labels) {
				here++
			}
		}
		count.pods[domain] += here
	}
	if len(count.pods) > 0 {
		count.least = slices.Min(slices.Collect(maps.Values(count.pods)))
	}
	if about(c.Pod.Labels) {
		count.self = 1
	}
	c.counts[by] = count
	return count
}

// over says whether a node counts for a constraint (podtopologyspread/common.go,
// matchNodeInclusionPolicies): as a rule, where the pod's selector takes it, whatever its
// taints.
func (c *Spread) over(s corev1.TopologySpreadConstraint, n *view.Node) bool {
	if (s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor) && !c.labels.Accepts(n) {
		return false
	}
	return s.NodeTaintsPolicy == nil || *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore || len(Untolerated(c.Pod, n.Node)) == 0
}
