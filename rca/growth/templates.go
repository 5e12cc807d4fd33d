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

// A group's template is refused by the first of the scheduler's filters that does: taints are
// looked at before labels, both before what a machine has, and volumes after that
// (kube-scheduler's default order of filter plugins). So a group that is refused for the volume has
// all else that is asked, and of one that is refused for its taint nobody knows the labels.

// byVolume tells of groups whose machines would do, were the pod's volume where they are.
func (c *Case) byVolume(g *Growth, said []scaling.Reason, evidence []diagnosis.Evidence) {
	of := ofBar(said, scaling.Volume)
	g.Bar, g.OfTemplate = scaling.Volume, diagnosis.VolumeConflict
	g.Template = view.Found(diagnosis.Likely, "its volume cannot be had where the node groups are that have what it asks for: "+view.Quotable(of[0].Text, 160), evidence[0])
	says := "the cluster autoscaler brings no node, for the pod's volume could not be had on it"
	if len(of) < len(said) {
		says += ": that is so of the node groups with all else that it asks for"
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence...)
}

// byTemplates tells of groups that are refused for their labels and for their taints.
func (c *Case) byTemplates(g *Growth, o *scaling.Outlook, said []scaling.Reason, evidence []diagnosis.Evidence) {
	labels, taints := ofBar(said, scaling.Selector), ofBar(said, scaling.Taint)
	hidden, sure := c.behindTaint(taints)
	switch {
	case len(labels) == 0:
		c.tellTemplate(g, diagnosis.UntoleratedTaint, "node group", taints, evidence[0])
	case hidden:
		c.tellTemplate(g, diagnosis.UntoleratedTaint, "node group", taints, evidence[0])
		g.LabelsHidden = !sure
		g.Template.Says = "the labels that it selects rule out every node group but those whose taint it does not tolerate: " + view.Quotable(taints[0].Text, 160)
		if !sure {
			g.Template.Says += "; their labels are looked at after that, and nobody has seen them"
		}
	default:
		c.groupSelector(g, o, labels, evidence)
	}
}

// behindTaint says whether groups that are refused for a taint could have the labels that the pod
// selects: by the nodes that have that taint. sure: one of them does.
func (c *Case) behindTaint(taints []scaling.Reason) (hidden, sure bool) {
	for _, r := range taints {
		key, seen := r.TaintKey(), false
		for _, n := range c.Cluster.SortedNodes() {
			if key == "" || !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key }) {
				continue
			}
			seen = true
			if ok, err := nodeaffinity.GetRequiredNodeAffinity(c.Pod).Match(n.Node); ok && err == nil {
				return true, true
			}
		}
		hidden = hidden || !seen
	}
	return hidden, false
}

// groupSelector tells a selector that fits nothing from a template at zero that does not
// speak of what nodes will have: labels that only software on the node writes are in none.
func (c *Case) groupSelector(g *Growth, o *scaling.Outlook, of []scaling.Reason, evidence []diagnosis.Evidence) {
	if c.byPoolLabel(g, o, evidence) || (whose{c}).byNamed(g, o, evidence) {
		return
	}
	unseen := ""
	for _, key := range view.LabelsAsked(c.Pod) {
		if len(c.Cluster.Column(key).Distinct) > 0 {
			continue
		}
		domain, _, _ := strings.Cut(key, "/")
		if domain == "nvidia.com" || strings.HasSuffix(domain, "node.kubernetes.io") && strings.HasPrefix(domain, "feature.") {
			g.Bar, g.Lacks = scaling.Selector, key
			g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "the cluster autoscaler cannot know that nodes of a group at zero will have label "+key+", which the pod asks for: it is written on the node", evidence...)
			return
		}
		unseen = key
	}
	c.tellTemplate(g, diagnosis.NodeSelectorMismatch, "node group", of, evidence[0])
	empty, _, _ := c.couldHold(o, (*scaling.Group).Empty)
	if unseen == "" || len(empty) == 0 {
		return
	}
	// What a cloud's group at zero gives its nodes is in no object of the API: it may be this label.
	g.Groups, g.Lacks = empty, unseen
	for i := range empty {
		evidence = append(evidence, diagnosis.Fact(o.Status.Ref, "node group "+empty[i].Short()+" has no machine and may have some", diagnosis.That("data", "", diagnosis.Contains, empty[i].Name)))
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Possible, "no node has label "+unseen+", and of a group at zero ("+groupNames(empty)+") the cluster autoscaler knows no more labels than its template says", evidence...)
}

// leftAlone is the priority below which the cluster autoscaler neither brings nor keeps a node for
// a pod (--expendable-pods-priority-cutoff, its default).
const leftAlone = -10

// byPriority tells of a pod that the autoscaler leaves alone, without a word.
func (c *Case) byPriority(g *Growth, o *scaling.Outlook) {
	p := c.Pod.Spec.Priority
	if p == nil || *p >= leftAlone || len(g.told) > 0 || o.Status == nil || len(o.Pools) > 0 || !c.stopped() {
		return
	}
	if age := c.Cluster.State.Now.Sub(o.Status.Updated); o.Status.Updated.IsZero() || age > silentAfter {
		return
	}
	g.Bar = scaling.Priority
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler runs and has said nothing of it: below priority %d it brings no node, unless its flag says otherwise (--expendable-pods-priority-cutoff), and the pod's is %d", leftAlone, *p),
		diagnosis.Fact(view.PodRef(c.Pod), fmt.Sprintf("priority %d, and no Event of the cluster autoscaler", *p), c.Cluster.OfPod(c.Pod, diagnosis.That("spec.priority", "", diagnosis.Is, fmt.Sprint(*p)))...),
		diagnosis.Fact(o.Status.Ref, "last updated "+o.Status.Updated.UTC().Format("2006-01-02T15:04:05Z07:00"), diagnosis.That("", "", diagnosis.Exists, "")))
}
