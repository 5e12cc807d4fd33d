package growth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byNamed tells of groups at zero that carry in their name, and no other group does, what the pod selects and no node has:
// their machines may have that label, and the autoscaler knows only what the cloud's template says of them.
func (c whose) byNamed(g *Growth, o *scaling.Outlook, evidence []diagnosis.Evidence) bool {
	for _, key := range slices.Sorted(maps.Keys(c.Pod.Spec.NodeSelector)) {
		value := c.Pod.Spec.NodeSelector[key]
		if !c.tells(o, key, strings.ToLower(value)) {
			continue
		}
		if slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return n.Labels[key] == value }) {
			continue
		}
		var named []scaling.Group
		all := slices.DeleteFunc(slices.Clone(groupsOf(o)), func(group scaling.Group) bool { return !hasWord(group.Short(), value) })
		for i := range all {
			if all[i].Empty() {
				named = append(named, all[i])
			}
		}
		if len(named) == 0 || len(named) < len(all) {
			continue
		}
		g.Bar, g.Groups, g.Selects = scaling.Other, named, key+"="+value
		for i := range named {
			evidence = append(evidence, statusOf(o, &named[i]))
		}
		evidence = append(evidence, diagnosis.Fact(view.PodRef(c.Pod), "selects "+g.Selects, diagnosis.That("spec.nodeSelector", key, diagnosis.Is, value)))
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler looked and cannot help: of a group at zero (%s), whose machines may have %s by its name, it knows what its template says", groupNames(named), g.Selects), evidence...)
		return true
	}
	return false
}

// tells says whether a label's value says something by standing in a group's name. Many a group of machines with GPUs is
// called gpu: that says something of a label that no node has, and where what nodes have of it names groups, too.
func (c whose) tells(o *scaling.Outlook, key, value string) bool {
	switch value {
	case "", "true", "false", "default":
		return false
	case "gpu", "gpus":
		values := c.Cluster.Column(key).Distinct
		return len(values) == 0 || slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(groupsOf(o), func(g scaling.Group) bool { return hasWord(g.Short(), v) })
		})
	}
	return true
}

// ofOffering are labels of where and at which price a machine is to be had: that none has them is told of instance types, too.
var ofOffering = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, "topology.k8s.aws/zone-id", "karpenter.sh/capacity-type"}

// meets notes what the pod selects and machines of a pool would have, whose instance types alone are refused: Karpenter
// compares labels first (kc:controllers/provisioning/scheduling/nodeclaim.go, Add).
func meets(c *Case, g *Growth, o *scaling.Outlook, said []scaling.Reason) {
	for _, r := range said {
		if r.Bar != scaling.Lacks && r.Bar != scaling.Offering {
			continue
		}
		pool := o.Pool(r.Pool)
		for key, value := range c.Pod.Spec.NodeSelector {
			if slices.Contains(ofOffering, key) {
				continue
			}
			if strings.Contains(r.Text, key+" In ["+value+"]") || pool != nil && pool.Labels[key] == value {
				if g.met == nil {
					g.met = map[string]string{}
				}
				g.met[key] = value
			}
		}
	}
}

// Met says whether a pool's machines would have what the pod selects.
func (g *Growth) Met() bool { return len(g.met) > 0 }

// Meant says why one of the labels by which the pod selects nodes may be what is meant, though no node has it; empty where
// nothing says so.
func (g *Growth) Meant(keys ...string) string {
	for _, key := range keys {
		if value, met := g.met[key]; met {
			return "Karpenter would make machines with " + key + "=" + value + ", and refuses the pod for something else: what it selects is there to be had"
		}
		if strings.HasPrefix(g.Selects, key+"=") {
			return fmt.Sprintf("whether machines of node group %s, of which there is none now, have %s is in no object: they may be what is meant", g.Groups[0].Short(), g.Selects)
		}
	}
	return ""
}

// hasWord says whether a group's name has a word in it.
func hasWord(name, word string) bool {
	hyphened := func(s string) string {
		return "-" + strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(s)) + "-"
	}
	return strings.Contains(hyphened(name), hyphened(word))
}
