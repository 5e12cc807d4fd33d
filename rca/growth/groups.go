package growth

import (
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// groupFit says whether machines of a node group could hold the pod, by those that it has: the
// autoscaler's status says nothing of what a group is made of. Maybe: nobody knows.
func (c *Case) groupFit(o *scaling.Outlook, g *scaling.Group) scaling.Fit {
	if g.Health.NodeCounts.Registered.Total == 0 || len(c.Asks) == 0 || c.Cluster.State.Unread["Node"] != "" {
		return scaling.Maybe
	}
	if !c.Cluster.HasGPUs() && o.Status.Machines() <= len(c.Cluster.SortedNodes()) {
		return scaling.No // all machines of groups are seen, and none has a GPU
	}
	fit := scaling.Maybe
	for _, n := range membersOf(c.Cluster, g) {
		switch c.wouldHold(n) {
		case scaling.Yes:
			return scaling.Yes
		case scaling.No:
			fit = scaling.No
		case scaling.Maybe:
			return scaling.Maybe
		}
	}
	return fit
}

// membersOf are the nodes whose pool the group is of, by labels: of pools with similar names
// the longest.
func membersOf(w *view.Cluster, g *scaling.Group) []*view.Node {
	pool := ""
	for _, n := range w.SortedNodes() {
		if p := scaling.PoolOf(n.Node); len(p) > len(pool) && g.Of(p) {
			pool = p
		}
	}
	var out []*view.Node
	for _, n := range w.SortedNodes() {
		if pool != "" && scaling.PoolOf(n.Node) == pool {
			out = append(out, n)
		}
	}
	return out
}

// wouldHold says whether a fresh machine like the node could hold the pod: by what it has,
// its labels, and the taints that it was made with.
func (c *Case) wouldHold(n *view.Node) scaling.Fit {
	if !c.letOn(n) {
		return scaling.No
	}
	for _, a := range c.Asks {
		switch {
		case n.Capacity(a.Resource) >= a.Count:
		case n.HasGPUs() && (!n.AdvertisesAny() || a.Resource != view.WholeGPU):
			return scaling.Maybe // it may have what it does not offer
		default:
			return scaling.No
		}
	}
	return scaling.Yes
}

// couldHold are the groups of the status for which something is so, and that could hold the
// pod: those of which that is known, else those of which nobody knows. some: there are some for
// which it is so, whether they could or not.
func (c *Case) couldHold(o *scaling.Outlook, is func(*scaling.Group) bool) (groups []scaling.Group, sure, some bool) {
	var maybe []scaling.Group
	for i := range groupsOf(o) {
		g := &o.Status.Groups[i]
		if !is(g) {
			continue
		}
		some = true
		switch c.groupFit(o, g) {
		case scaling.Yes:
			groups = append(groups, *g)
		case scaling.Maybe:
			maybe = append(maybe, *g)
		case scaling.No:
		}
	}
	if len(groups) > 0 {
		return groups, true, some
	}
	return maybe, false, some
}

// whichIsUnknown ends what is said of several groups of which nobody knows whether they could
// hold the pod.
const whichIsUnknown = "; which of them could hold the pod nobody knows"

// byBackoff tells of the groups that are left alone for they failed to grow: by name those that
// could hold the pod. none: nothing that failed could hold it.
func (c *Case) byBackoff(g *Growth, o *scaling.Outlook, alone bool, evidence []diagnosis.Evidence) (told, none bool) {
	groups, sure, some := c.couldHold(o, (*scaling.Group).InBackoff)
	switch {
	case some && len(groups) == 0:
		return false, true
	case len(groups) > 1 && c.tellBackoffs(g, o, groups, sure, evidence):
		g.Suits = sure
		return true, false
	}
	for i := range groups {
		if c.tellBackoff(g, o, &groups[i], evidence) {
			g.Groups, g.Suits = groups[i:i+1], alone
			return true, false
		}
	}
	return c.tellFailure(g, o, nil, time.Time{}, evidence), false
}

// tellBackoffs is tellBackoff of several groups, where the cloud's codes are told of all.
func (c *Case) tellBackoffs(g *Growth, o *scaling.Outlook, groups []scaling.Group, sure bool, evidence []diagnosis.Evidence) bool {
	var names, words []string
	for i := range groups {
		info := groups[i].ScaleUp.BackoffInfo
		names, words = append(names, groups[i].Short()), append(words, info.ErrorCode, info.ErrorMessage)
		if len(scaling.Codes(info.ErrorCode, info.ErrorMessage)) == 0 {
			return false
		}
		evidence = append(evidence, statusOf(o, &groups[i]))
	}
	g.Groups, g.Codes = groups, scaling.Codes(words...)
	says, certainty := refusedSays("node groups "+strings.Join(names, ", ")+" a machine", g.Codes), diagnosis.Proven
	if !sure {
		says, certainty = says+whichIsUnknown, diagnosis.Likely
	}
	g.tell(diagnosis.CloudCapacityRefused, certainty, says, evidence...)
	return true
}
