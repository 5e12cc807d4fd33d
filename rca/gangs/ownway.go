package gangs

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// ofPlace are the plugins by which one pod keeps another from its node, however much is free there.
var ofPlace = []string{"InterPodAffinity", "NodePorts"}

// standsInOwnWay tells of a rollout whose pods cannot be on one node together, where old ones stand on
// every node that would take the new one: it is the place, and not what it asks for, that they hold.
func (c *Workload) standsInOwnWay(mine []*corev1.Pod, certainty diagnosis.Certainty) *view.Finding {
	if kind := c.roller().Kind; kind != "Deployment" && kind != "DaemonSet" || len(c.Verdict.Feasible()) > 0 {
		return nil
	}
	var evidence []diagnosis.Evidence
	var held []*corev1.Pod
	why := "its pods have to be apart"
	for _, v := range c.Verdict.Nodes {
		n := c.Cluster.Nodes[v.Node]
		if slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return !slices.Contains(ofPlace, b.Plugin) }) {
			continue // it would not take the pod without them either
		}
		stand := c.standOn(n)
		if len(stand) == 0 || slices.ContainsFunc(stand, func(p *corev1.Pod) bool { return !slices.Contains(mine, p) }) {
			return nil
		}
		if ports := terms.PortsTaken(c.Pod, n); len(ports) > 0 {
			why = fmt.Sprintf("two of its pods cannot have host port %d on one node", ports[0].Port)
			evidence = append(evidence, terms.TellPorts(ports[:1], n).Evidence...)
		}
		evidence = append(evidence, diagnosis.Fact(view.PodRef(stand[0]), "runs on "+n.Name+", where no other of its kind may be", diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name)))
		held = append(held, stand[0])
	}
	if len(held) == 0 {
		return nil
	}
	last := &evidence[len(evidence)-1]
	last.Claims = append(append(last.Claims, c.together(held, nil)...), c.keeps()...)
	if c.Cluster.State.Unread["Pod"] != "" {
		certainty = diagnosis.Likely
	}
	where := fmt.Sprintf("old ones stand on all %s that would take the new one", view.CountOf(len(held), "node"))
	if len(held) == 1 {
		where = "an old one stands on the only node that would take the new one"
	}
	return view.Found(certainty, fmt.Sprintf("its rollout makes a new pod before it stops an old one (%s), %s, and %s", c.keepsSays(), why, where), evidence...)
}

// standOn are the pods of a node that keep the pod off it, whatever they hold; none where something
// else does so too.
func (c *Workload) standOn(n *view.Node) []*corev1.Pod {
	if unmet, _, _ := c.Company.UnmetTerms(n); len(unmet) > 0 {
		return nil
	}
	out := c.Company.InTheWay(n)
	for _, t := range terms.PortsTaken(c.Pod, n) {
		out = append(out, t.By)
	}
	return out
}

// surging says whether a DaemonSet's rollout makes a node's new pod before it stops the old one: none
// may be unavailable then (apps/v1, RollingUpdateDaemonSet).
func surging(d *appsv1.DaemonSet) bool {
	r := d.Spec.UpdateStrategy.RollingUpdate
	return r != nil && r.MaxSurge != nil && r.MaxSurge.String() != "0" && r.MaxSurge.String() != "0%"
}
