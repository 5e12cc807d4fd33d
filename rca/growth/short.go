package growth

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// short is a resource of which fresh nodes of some groups have too little, as the autoscaler counts them.
// It names each resource that a group lacks, and of how many groups that is so, not of which: those whose
// nodes are there can be looked at.
type short struct {
	scaling.Reason
	seen []*view.Node // that lack it, one of a group
	left int          // of how many other groups it is said
}

// fresh is what the cluster autoscaler's fresh nodes have too little of for the pod.
type fresh struct{ *Case }

func (c fresh) shortOf(o *scaling.Outlook, lacks []scaling.Reason) []short {
	out := make([]short, len(lacks))
	for i, r := range lacks {
		out[i] = short{Reason: r, left: r.Count}
	}
	for i := range groupsOf(o) {
		nodes := membersOf(c.Cluster, &o.Status.Groups[i])
		if len(nodes) == 0 || !c.letOn(nodes[0]) {
			continue
		}
		lacked := c.freshLacks(nodes[0])
		for k := range out {
			if slices.Contains(lacked, corev1.ResourceName(out[k].Lacks)) {
				out[k].seen, out[k].left = append(out[k].seen, nodes[0]), out[k].left-1
			}
		}
	}
	return out
}

// letOn says whether labels and taints of a machine like the node let the pod on it: that is looked at
// before what the machine has.
func (c *Case) letOn(n *view.Node) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(c.Pod).Match(n.Node)
	return ok && err == nil && scaling.Tolerates(c.Pod, n.Spec.Taints)
}

// byLack tells what fresh nodes have too little of. A group whose nodes are there and lack something is
// not the one that is at zero and of which the autoscaler knows its template alone.
func (c fresh) byLack(g *Growth, o *scaling.Outlook, said []scaling.Reason, blind string, evidence []diagnosis.Evidence) {
	g.Bar, g.Lacks = scaling.Lacks, blind
	if blind != "" {
		says := c.lacksSays("the cluster autoscaler", "no fresh node of any group", blind)
		if like := c.offering(o); len(like) > 0 {
			n := membersOf(c.Cluster, &like[0])[slices.IndexFunc(membersOf(c.Cluster, &like[0]), c.freshHolds)]
			has := fmt.Sprint(n.Allocatable(corev1.ResourceName(blind)))
			says, evidence = says+c.uncountedOn(g, like), append(evidence, statusOf(o, &like[0]),
				diagnosis.Fact("Node/"+n.Name, "offers "+has+" "+blind, diagnosis.That(diagnosis.Allocatable, blind, diagnosis.Is, has)))
		}
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence...)
		return
	}
	all := c.shortOf(o, ofBar(said, scaling.Lacks))
	find := func(is func(short) bool) int { return slices.IndexFunc(all, is) }
	device := func(s short) bool { return strings.Contains(s.Lacks, "/") }
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	says := ""
	if s, n := c.seenShort(o, all); n != nil {
		says, evidence = c.lacksBeside(g, s, n, evidence)
	} else if at := find(func(s short) bool { return device(s) && s.left > 0 }); at >= 0 {
		says, evidence = c.lacksDevice(g, o, all[at].Reason, len(ofBar(said, scaling.Limit)) > 0, evidence)
	} else if at := find(func(s short) bool { return s.left > 0 && s.Lacks != "" && len(s.seen) == 0 }); at >= 0 && len(empty) > 0 {
		says, evidence = c.lacksUnseen(g, o, all[at], empty, evidence)
	} else if at := find(device); at >= 0 {
		says, evidence = c.lacksDevice(g, o, all[at].Reason, len(ofBar(said, scaling.Limit)) > 0, evidence)
	} else if at := find(func(s short) bool { return len(s.seen) > 0 }); at >= 0 {
		says, evidence = c.lacksSeen(g, o, all[at], evidence)
	} else {
		says = c.lacksSays("the cluster autoscaler", "no fresh node of any group", "")
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence...)
}

// seenShort is what else than a device the autoscaler misses on some group, and a machine that is there and is of that
// kind: it lets the pod on and has its devices. nil where the groups are known, by which it is told better, or no such
// machine is there.
func (c fresh) seenShort(o *scaling.Outlook, all []short) (short, *view.Node) {
	if len(groupsOf(o)) > 0 || len(c.Asks) == 0 {
		return short{}, nil
	}
	for _, n := range c.Cluster.SortedNodes() {
		if !c.letOn(n) {
			continue
		}
		lacked := c.freshLacks(n)
		if slices.ContainsFunc(lacked, func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }) {
			continue
		}
		for _, s := range all {
			if slices.Contains(lacked, corev1.ResourceName(s.Lacks)) {
				return s, n
			}
		}
	}
	return short{}, nil
}

// lacksBeside tells of what machines with the devices have too little of, by one that is there.
func (c fresh) lacksBeside(g *Growth, s short, n *view.Node, evidence []diagnosis.Evidence) (string, []diagnosis.Evidence) {
	name := corev1.ResourceName(s.Lacks)
	g.Roomiest, g.Small = n, []corev1.ResourceName{name}
	asked, has := c.Wants[name], n.Status.Allocatable[name]
	return fmt.Sprintf("a fresh node such as %s, which has the devices, has too little %s for the pod: %s is asked, and it has %s, for the pods of DaemonSets too", n.Name, s.Lacks, asked.String(), has.String()),
		append(evidence, c.askedOf(s.Lacks), diagnosis.Fact("Node/"+n.Name, "offers "+has.String()+" "+s.Lacks, diagnosis.That(diagnosis.Allocatable, s.Lacks, diagnosis.Is, has.String())))
}

// lacksUnseen tells of groups at zero of which the autoscaler's template has too little.
func (c fresh) lacksUnseen(g *Growth, o *scaling.Outlook, s short, empty []scaling.Group, evidence []diagnosis.Evidence) (string, []diagnosis.Evidence) {
	asked := c.Wants[corev1.ResourceName(s.Lacks)]
	g.Groups, g.Small = empty, []corev1.ResourceName{corev1.ResourceName(s.Lacks)}
	if s.Lacks == string(corev1.ResourceEphemeralStorage) { // no cloud's list of machines speaks of the disk
		g.Lacks, g.Small = s.Lacks, nil
	}
	for i := range empty {
		evidence = append(evidence, statusOf(o, &empty[i]))
	}
	evidence = append(evidence, c.askedOf(s.Lacks))
	return fmt.Sprintf("a fresh node of a group at zero (%s), as the cluster autoscaler knows it, has not the %s %s that the pod asks for: it knows no more of it than its template says", groupNames(empty), asked.String(), s.Lacks), evidence
}

// lacksSeen tells of groups whose machines are too small, by one that is there.
func (c fresh) lacksSeen(g *Growth, o *scaling.Outlook, s short, evidence []diagnosis.Evidence) (string, []diagnosis.Evidence) {
	name := corev1.ResourceName(s.Lacks)
	most := slices.MaxFunc(s.seen, func(a, b *view.Node) int {
		x, y := a.Status.Allocatable[name], b.Status.Allocatable[name]
		return x.Cmp(y)
	})
	g.Small, g.Roomiest = []corev1.ResourceName{name}, most
	for i := range groupsOf(o) {
		if group := &o.Status.Groups[i]; slices.ContainsFunc(membersOf(c.Cluster, group), func(n *view.Node) bool { return slices.Contains(s.seen, n) }) {
			g.Groups, evidence = append(g.Groups, *group), append(evidence, statusOf(o, group))
		}
	}
	asked, has := c.Wants[name], most.Status.Allocatable[name]
	return fmt.Sprintf("no fresh node of node group %s has the %s %s that the pod asks for: one such as %s has %s, for the pods of DaemonSets too", groupNames(g.Groups), asked.String(), s.Lacks, most.Name, has.String()),
		append(evidence, c.askedOf(s.Lacks), diagnosis.Fact("Node/"+most.Name, "offers "+has.String()+" "+s.Lacks, diagnosis.That(diagnosis.Allocatable, s.Lacks, diagnosis.Is, has.String())))
}

// askedOf is what the pod asks for of a resource.
func (c *Case) askedOf(name string) diagnosis.Evidence {
	q := c.Wants[corev1.ResourceName(name)]
	return diagnosis.Fact(view.PodRef(c.Pod), "asks for "+q.String()+" "+name, c.Cluster.OfPod(c.Pod, diagnosis.That(diagnosis.Requests, name, diagnosis.Is, q.String()))...)
}
