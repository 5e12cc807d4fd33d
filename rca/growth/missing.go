package growth

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byMissing tells of groups that have as many machines as they may, and not as many nodes: a
// machine that was asked for and does not join counts for the group's size (the cluster
// autoscaler compares its target), so a larger size is not what is wrong.
func (c *Case) byMissing(g *Growth, o *scaling.Outlook, said []scaling.Reason, evidence []diagnosis.Evidence) bool {
	if !slices.ContainsFunc(said, ofSize) {
		return false
	}
	groups, _, _ := c.couldHold(o, func(group *scaling.Group) bool { return group.AtMax() && group.Missing() > 0 })
	if full, _, _ := c.couldHold(o, (*scaling.Group).AtMax); len(groups) == 0 || len(full) > len(groups) {
		return false
	}
	since := c.asked(groups)
	late := slices.ContainsFunc(groups, func(group scaling.Group) bool { return group.Health.NodeCounts.LongUnregistered > 0 })
	if since.IsZero() && !late {
		return false
	}
	g.Groups, g.Since, g.Suits = groups, since, len(said) == len(ofBar(said, scaling.Limit))
	count := 0
	for i := range groups {
		count += groups[i].Missing()
		evidence = append(evidence, statusOf(o, &groups[i]))
	}
	what := fmt.Sprintf("%s of node group %s", view.CountOf(count, "machine"), groupNames(groups))
	if age := c.Cluster.State.Now.Sub(since); !late && age <= promised {
		g.By = since.Add(promised)
		g.tell(diagnosis.ScalingUp, diagnosis.Likely, what+" is asked of the cloud and has not joined yet; the group may have no more", evidence...)
		return true
	}
	g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, what+" was asked of the cloud and never joined, and takes up the group's largest size", evidence...)
	return true
}

// asked is when the autoscaler last said that it grows one of the groups for the pod; zero
// where it has not.
func (c *Case) asked(groups []scaling.Group) time.Time {
	e := c.newestEvent(func(e *corev1.Event) bool {
		return scaling.From(e, scaling.ClusterAutoscaler) && e.Reason == "TriggeredScaleUp" && slices.ContainsFunc(scaling.Grown(e.Message), func(name string) bool {
			return slices.ContainsFunc(groups, func(group scaling.Group) bool { return group.Name == name || group.Short() == name })
		})
	})
	if e == nil {
		return time.Time{}
	}
	return scaling.Begun(e)
}

// lacksDevice says which device no fresh node has, as the autoscaler knows them: of a group at
// zero by its template alone, of another by what one of its machines has of the cloud's.
func (c fresh) lacksDevice(g *Growth, o *scaling.Outlook, r scaling.Reason, limited bool, evidence []diagnosis.Evidence) (string, []diagnosis.Evidence) {
	any := "any group"
	if limited {
		any = "a group that may grow"
	}
	says := fmt.Sprintf("no fresh node of %s, as the cluster autoscaler knows them, has the %s that the pod asks for (%d %s)", any, r.Lacks, r.Count, view.Quotable(r.Text, 60))
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	like := c.offering(o)
	switch {
	case len(empty) > 0:
		g.Groups, g.Lacks = empty, r.Lacks
		says += "; of a group at zero (" + groupNames(empty) + ") it knows no more than its template says"
	case len(like) > 0:
		says += c.uncountedOn(g, like)
	}
	for i := range g.Groups {
		evidence = append(evidence, statusOf(o, &g.Groups[i]))
	}
	return says, evidence
}

// offering are the groups that may grow and of which a node, were it fresh, would hold the pod.
func (c fresh) offering(o *scaling.Outlook) []scaling.Group {
	groups, sure, _ := c.couldHold(o, func(group *scaling.Group) bool {
		return group.Grows() && slices.ContainsFunc(membersOf(c.Cluster, group), c.freshHolds)
	})
	if !sure {
		return nil
	}
	return groups
}

// uncountedOn tells of groups that the autoscaler does not count on: one more machine of theirs holds the pod.
func (c fresh) uncountedOn(g *Growth, groups []scaling.Group) string {
	g.Groups, g.Like, g.Lacks = groups, true, ""
	return "; a node of group " + groupNames(groups) + " offers as many, which it does not count on"
}

// freshHolds says whether a machine like the node, with nobody on it but what DaemonSets have on
// each, has all that the pod requests.
func (c *Case) freshHolds(n *view.Node) bool { return len(c.freshLacks(n)) == 0 }

// freshLacks are the resources of which it has too little.
func (c *Case) freshLacks(n *view.Node) []corev1.ResourceName {
	left := n.Status.Allocatable.DeepCopy()
	for _, p := range n.Pods {
		if by := metav1.GetControllerOfNoCopy(p); by == nil || by.Kind != "DaemonSet" {
			continue
		}
		for name, taken := range view.PodRequests(p) {
			q := left[name]
			q.Sub(taken)
			left[name] = q
		}
	}
	var out []corev1.ResourceName
	for name, asked := range c.Wants {
		if q := left[name]; q.Cmp(asked) < 0 {
			out = append(out, name)
		}
	}
	return out
}

// byNeighbours tells of groups whose fresh node would not meet what the pod asks of its
// neighbours: the autoscaler takes it for one in the zone of those that the group has, or of its
// template.
func (c *Case) byNeighbours(g *Growth, o *scaling.Outlook, evidence []diagnosis.Evidence) {
	g.Bar, g.Over = scaling.Topology, topologyOf(c.Pod)
	for i := range groupsOf(o) {
		if group := &o.Status.Groups[i]; !group.AtMax() && c.groupFit(o, group) != scaling.No {
			g.Groups, evidence = append(g.Groups, *group), append(evidence, statusOf(o, group))
		}
	}
	says := "the cluster autoscaler brings no node: it takes a fresh one for one like those that its group has, and there the pod's affinity or spread would not be met"
	if g.Over != "" {
		says += " over " + g.Over
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence...)
}

// topologyOf is the first label other than the node's own name by which the pod demands to be
// apart from others, beside them or spread.
func topologyOf(p *corev1.Pod) string {
	var keys []string
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			keys = append(keys, t.TopologyKey)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			keys = append(keys, t.TopologyKey)
		}
	}
	for _, s := range p.Spec.TopologySpreadConstraints {
		keys = append(keys, s.TopologyKey)
	}
	if at := slices.IndexFunc(keys, func(key string) bool { return key != corev1.LabelHostname }); at >= 0 {
		return keys[at]
	}
	return ""
}

// byPoolLabel tells of a selector that asks for a pool by its name where the pool's group is at
// zero: its nodes have that label, and the autoscaler, which knows none of them, does not (Azure/AKS
// issue 2832).
func (c *Case) byPoolLabel(g *Growth, o *scaling.Outlook, evidence []diagnosis.Evidence) bool {
	for key, value := range c.Pod.Spec.NodeSelector {
		if !scaling.IsPoolLabel(key) || slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return n.Labels[key] == value }) {
			continue
		}
		empty, _, _ := c.couldHold(o, func(group *scaling.Group) bool { return group.Empty() && group.Of(value) })
		if len(empty) == 0 {
			continue
		}
		g.Groups, g.Bar, g.Lacks = empty, scaling.Selector, key
		for i := range empty {
			evidence = append(evidence, statusOf(o, &empty[i]))
		}
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler does not know that nodes of group %s, which is at zero, have label %s=%s, which the pod asks for", groupNames(empty), key, value), evidence...)
		return true
	}
	return false
}
