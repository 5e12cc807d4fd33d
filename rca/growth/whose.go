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

// Autoscalers say in one breath why each of their pools or groups does not grow. What keeps the pod from
// those that are for others is no matter of its, so what is said is first held against whom it is said of.

// whose is a case of which it is asked whom the words of an autoscaler are about.
type whose struct{ *Case }

// forIt leaves of what Karpenter says of its pools what is about those that are sure to be for the pod, and
// what names none. All of it where no pool is sure to be.
func (c whose) forIt(o *scaling.Outlook, said []scaling.Reason) []scaling.Reason {
	fits := func(r scaling.Reason) bool { p := o.Pool(r.Pool); return p != nil && c.poolFit(p) == scaling.Yes }
	if !slices.ContainsFunc(said, fits) {
		return said
	}
	return slices.DeleteFunc(slices.Clone(said), func(r scaling.Reason) bool { return o.Pool(r.Pool) != nil && !fits(r) })
}

// behindTaint is what Karpenter says of pools for GPUs that are refused for their taint, and whose labels
// are those that the pod selects: it looks at taints first (pkg/controllers/provisioning/scheduling/nodeclaim.go),
// so what other pools' labels lack is no matter of the pod's.
func (c whose) behindTaint(o *scaling.Outlook, said []scaling.Reason) []scaling.Reason {
	return slices.DeleteFunc(ofBar(said, scaling.Taint), func(r scaling.Reason) bool {
		p := o.Pool(r.Pool)
		return p == nil || !p.OfGPUs() || !p.Selected(c.Pod)
	})
}

// toleration is what the pod lacks for the first taint of the pool that it does not tolerate.
func (c *Case) toleration(p *scaling.Pool) string {
	for i := range p.Taints {
		t := &p.Taints[i]
		switch {
		case scaling.Tolerates(c.Pod, p.Taints[i:i+1]):
		case t.Value == "":
			return fmt.Sprintf("{key: %s, operator: Exists, effect: %s}", t.Key, t.Effect)
		default:
			return fmt.Sprintf("{key: %s, operator: Equal, value: %q, effect: %s}", t.Key, t.Value, t.Effect)
		}
	}
	return ""
}

// emptied are the pools of which Karpenter says on themselves, at about the time of an Event where one is
// given, that their requirements leave no instance type: it passes them over, and tells the pod of the others
// alone (pkg/controllers/provisioning/scheduling/scheduler.go).
func (c whose) emptied(o *scaling.Outlook, about *corev1.Event) (pools []scaling.Pool, facts []diagnosis.Evidence) {
	for i := range o.Pools {
		p := &o.Pools[i]
		for _, e := range c.Cluster.EventsOf("NodePool", "", p.Name) {
			if scaling.FromKarpenter(e) && e.Reason == "NoCompatibleInstanceTypes" && (about == nil || scaling.Seen(e).Add(promised).After(scaling.Seen(about))) {
				pools = append(pools, *p)
				facts = append(facts, diagnosis.Fact("NodePool/"+p.Name, e.Reason+": "+view.Quotable(e.Message, 200), diagnosis.Says(e.Message)))
				break
			}
		}
	}
	return pools, facts
}

// byEmptied tells of the pools for such a pod that have no instance type left, all of them: what Karpenter
// says to the pod is of pools for others.
func (c whose) byEmptied(g *Growth, o *scaling.Outlook, failed *corev1.Event, evidence diagnosis.Evidence) bool {
	if strings.Contains(failed.Message, noTypeLeft) {
		return false // it says so of all pools itself
	}
	pools, facts := c.emptied(o, failed)
	var own []scaling.Pool
	about := []diagnosis.Evidence{evidence}
	for i := range o.Pools {
		p := &o.Pools[i]
		if c.poolFit(p) != scaling.Yes {
			continue
		}
		at := slices.IndexFunc(pools, func(other scaling.Pool) bool { return other.Name == p.Name })
		if at < 0 {
			return false
		}
		own, about = append(own, *p), append(about, facts[at])
	}
	if len(own) == 0 {
		return false
	}
	g.Bar, g.None, g.Suits, g.Pools = scaling.Types, true, true, own
	says := "NodePool " + poolTitles(own) + ", which is for such a pod, has no instance type left, and Karpenter passes it over: what it requires leaves none, or the cloud has none of them now"
	for i := range own {
		if wrong := own[i].Unheard(); wrong != nil {
			values := strings.Join(wrong.Values, ", ")
			says = fmt.Sprintf("NodePool %s, which is for such a pod, takes no machine: it requires %s In %s, and of that label there are %s", own[i].Name, wrong.Key, values, strings.Join(scaling.Heard(wrong.Key), ", "))
			about = append(about, diagnosis.Fact("NodePool/"+own[i].Name, "requires "+wrong.Key+" In "+values, diagnosis.That("spec.template.spec.requirements", "", diagnosis.Contains, wrong.Values[0])))
		}
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, about...)
	return true
}

// leftOver is what the cluster autoscaler says of groups that nobody can look at, for it names none and
// counts them by the reason: a group whose nodes are there accounts for one of the reason that those give, in
// the order in which the scheduler's filters look. A reason that others give too stays as it is said, and all do
// where that leaves nothing.
func (c whose) leftOver(o *scaling.Outlook, said []scaling.Reason) []scaling.Reason {
	of := make([]int, len(said))
	for i := range groupsOf(o) {
		group := &o.Status.Groups[i]
		nodes := membersOf(c.Cluster, group)
		if len(nodes) == 0 || group.AtMax() || group.InBackoff() {
			continue // what is told of those is another matter
		}
		for k, r := range said {
			if of[k] < r.Count && c.gives(nodes[0], r) {
				of[k]++
				break
			}
		}
	}
	var left []scaling.Reason
	for k, r := range said {
		if of[k] < max(1, r.Count) {
			left = append(left, r)
		}
	}
	if len(left) == 0 {
		return said
	}
	return left
}

// gives says whether a fresh machine like the node would be refused for that.
func (c whose) gives(n *view.Node, r scaling.Reason) bool {
	tolerated := scaling.Tolerates(c.Pod, n.Spec.Taints)
	ok, err := nodeaffinity.GetRequiredNodeAffinity(c.Pod).Match(n.Node)
	switch r.Bar {
	case scaling.Taint:
		return !tolerated && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == r.TaintKey() })
	case scaling.Selector:
		return tolerated && err == nil && !ok
	case scaling.Lacks:
		return tolerated && err == nil && ok && slices.Contains(c.freshLacks(n), corev1.ResourceName(r.Lacks))
	}
	return false
}

// byStartup tells of groups at zero that are refused for a taint which fresh nodes lose by themselves: of
// others the autoscaler sees nodes without it.
func (c whose) byStartup(g *Growth, o *scaling.Outlook, said []scaling.Reason, evidence []diagnosis.Evidence) bool {
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	at := slices.IndexFunc(said, func(r scaling.Reason) bool { return r.AtStartup() != "" })
	if at < 0 || len(empty) == 0 {
		return false
	}
	g.Bar, g.Groups, g.Startup = scaling.Taint, empty, said[at].AtStartup()
	for i := range empty {
		evidence = append(evidence, statusOf(o, &empty[i]))
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler takes machines of a group at zero (%s) for tainted %s for good: by its name fresh nodes have that taint until something is up on them, of which it has not been told", groupNames(empty), g.Startup), evidence...)
	return true
}

// byRemembered tells of a group at zero that is refused for a taint which its last node was given: of those that could hold
// the pod, for one that asks GPUs those that are called as machines with GPUs are, where some are.
func (c whose) byRemembered(g *Growth, o *scaling.Outlook, taint string, evidence []diagnosis.Evidence) {
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	called := slices.DeleteFunc(slices.Clone(empty), func(of scaling.Group) bool { return !strings.Contains(strings.ToLower(of.Short()), "gpu") })
	if len(called) > 0 && len(c.Asks) > 0 {
		empty = called
	}
	of := ""
	if len(empty) > 0 {
		of = " (" + groupNames(empty) + ")"
	}
	g.Bar, g.Groups = scaling.Taint, empty
	for i := range empty {
		evidence = append(evidence, statusOf(o, &empty[i]))
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "the cluster autoscaler takes the machines of a node group for tainted "+taint+", which a node is given in its life and no fresh one has: of a group at zero"+of+" it knows its last node alone", evidence...)
}

// byClaimsAtZero tells of groups at zero of whose devices the autoscaler knows nothing: it copies the
// ResourceSlices of a node that runs, and without one has what the cloud's template says (simulator/node_info_utils.go).
func (c whose) byClaimsAtZero(g *Growth, o *scaling.Outlook, evidence []diagnosis.Evidence) bool {
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	if len(empty) == 0 {
		return false
	}
	g.Bar, g.Groups = scaling.Claims, empty
	for i := range empty {
		evidence = append(evidence, statusOf(o, &empty[i]))
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler finds no devices for the pod's claims on a fresh node of any group: of one at zero (%s) it does not know what its driver would publish", groupNames(empty)), evidence...)
	return true
}
