package rca

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// nearestInstead asks for the profile of the node's model that is nearest to one that it
// does not have, and lays the node out with it. Where it is laid out already, and free,
// the request is changed alone.
func (c *Case) nearestInstead(n *nodeView, a ask, sets [][]change) [][]change {
	near := spelled(n.nearestProfile(a.profile))
	other := ask{resource: corev1.ResourceName(migPrefix + near), profile: near, count: a.count}
	if near == "" || n.has(other.resource, other.count) {
		return nil
	}
	sizeOf := n.sizes(a)
	request := c.changeRequest(MIGProfileUnsupported, "ask "+string(other.resource)+" instead of "+string(a.resource)+sizeOf(a.resource).lost(sizeOf(other.resource)), askOther(a.resource, other.resource))
	changed := make([][]change, len(sets))
	for i, s := range sets {
		changed[i] = append(slices.Clone(s), request)
	}
	if c.enough(changed, RepartitionGPU) {
		return nil
	}
	as := c.asking(request)
	ways := as.relayouts(n, other)
	if len(ways) == 0 {
		ways = as.leastCostly(as.modeChanges(n, other))
	}
	var out [][]change
	for _, r := range ways {
		if set, ok := as.repartition(n, MIGProfileUnsupported, other, r, changed); ok {
			out = append(out, append([]change{request}, set...))
		}
	}
	return out
}

// asking is the case of a pod that asks for something else: what makes room for that is
// what makes room for it once its request is changed.
func (c *Case) asking(request change) *Case {
	if as, known := c.instead[request.title]; known {
		return as
	}
	as := *c
	as.Pod = c.Pod.DeepCopy()
	request.pod(as.Pod)
	as.wants, as.asks = maps.Clone(podRequests(as.Pod)), asksOf(as.Pod)
	as.host, as.weighed, as.tenants = nil, nil, nil
	if c.instead == nil {
		c.instead = map[string]*Case{}
	}
	c.instead[request.title] = &as
	return &as
}
