package causes

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Pods of one incident may differ in where they are to go: a DaemonSet's are made for a node each, a StatefulSet's go
// where the volume of each is, and who assigns topologies gives each a selector of its own. Each node is judged by a pod
// that is meant for it, and by the one that stands for the others where there is none.

// fellow is the pod that a node is judged by, where that is another than the one that stands for all.
type fellow struct {
	pod      *corev1.Pod
	blockers []whatif.Blocker
}

// Fellows are the other pods of the incident that wait for a node.
func (c *Case) Fellows() []*corev1.Pod {
	all, namespace := *view.Kept(c.Cluster, noneYet), c.Incident.Workload.Namespace
	if all[namespace] == nil {
		all[namespace] = map[string][]*corev1.Pod{}
		for _, p := range c.Cluster.State.Pods {
			if _, _, waits := incident.Waiting(p); waits && p.Namespace == namespace && p.Spec.NodeName == "" {
				id := c.Cluster.IncidentOf(p)
				all[namespace][id] = append(all[namespace][id], p)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all[namespace][c.Incident.ID]), func(p *corev1.Pod) bool { return p.Name == c.Pod.Name })
}

// waiting are the pods that wait for a node, by namespace and incident.
type waiting map[string]map[string][]*corev1.Pod

func noneYet(*view.Cluster) *waiting { return &waiting{} }

// meet has the scheduler's filters judge each of the nodes that the pod is not meant for by one that is. Of pods that are
// meant for the same nodes the first is asked.
func meet(ctx context.Context, c *Case) error {
	if c.bound || c.Unborn || len(c.Incident.Pods) < 2 {
		return nil
	}
	mine := terms.MeantOf(c.Cluster, c.Pod)
	met, open := map[string]bool{mine.Key: true}, map[string]*view.Node(nil)
	for _, p := range c.Fellows() {
		its := terms.MeantOf(c.Cluster, p)
		if met[its.Key] {
			continue
		}
		if met[its.Key] = true; open == nil {
			open = openTo(c, mine)
		}
		names := its.Among(open)
		if len(names) == 0 {
			continue
		}
		verdicts, err := c.Cluster.Snapshot.ExplainOn(ctx, p, names)
		if err != nil {
			return err
		}
		for _, v := range verdicts {
			c.meant[v.Node] = fellow{p, v.Blockers}
			delete(open, v.Node)
		}
	}
	return nil
}

// openTo are the nodes that a pod is not meant for.
func openTo(c *Case, m *terms.Meant) map[string]*view.Node {
	c.meant = map[string]fellow{}
	out := map[string]*view.Node{}
	for _, n := range c.Cluster.SortedNodes() {
		if !m.For(n) {
			out[n.Name] = n
		}
	}
	return out
}

// IsFellows says whether another pod of the incident is meant for a node, and this one is not.
func (c *Case) IsFellows(node string) bool {
	_, is := c.meant[node]
	return is
}

// judging is the case that a node is judged by, with what keeps its pod from there.
func judging(c *Case, v whatif.NodeVerdict) (*Case, []whatif.Blocker) {
	m, ok := c.meant[v.Node]
	if !ok {
		return c, v.Blockers
	}
	if c.others[m.pod] == nil {
		if c.others == nil {
			c.others = map[*corev1.Pod]*Case{}
		}
		c.others[m.pod] = c.of(m.pod)
	}
	return c.others[m.pod], m.blockers
}

// of is the case as another of its pods shows it.
func (c *Case) of(p *corev1.Pod) *Case {
	k := *c
	k.Pod, k.Refusal, k.Asker, k.Asks, k.Wants = p, p.Status, c.ForPod(p), view.AsksOf(p), view.PodRequests(p)
	k.Labels, k.volumes = terms.LabelsOf(k.Subject()), terms.VolumesOf(k.Subject())
	k.Spread = terms.SpreadOf(k.Subject(), k.Labels)
	if !reflect.DeepEqual(company(p), company(c.Pod)) { // else whom it has to be near and apart from is known
		k.Company = terms.CompanyOf(k.Subject(), k.Asker)
	}
	return &k
}

// company is all of a pod that its own and others' terms about pods go by.
func company(p *corev1.Pod) []any {
	return []any{p.Labels, terms.TogetherWith(p), terms.ApartFrom(p)}
}

// unmeant tells of a node that no waiting pod of the incident is for, though each is for some: what one of them asks, and the
// node is not, says nothing of the others. nil where it is not so.
func unmeant(c *Case, n *view.Node) *finding {
	if made := view.MadeFor(c.Pod); made != "" && (made == n.Name || c.Node(made) == nil) {
		return nil
	} else if made == "" && !slices.ContainsFunc(c.Labels.On(n).Labels, func(l terms.MissedLabel) bool { return asksAlone(c, l) }) {
		return nil
	}
	return &finding{diagnosis.Proven, "no waiting pod of it is meant to go there", []diagnosis.Evidence{
		diagnosis.Fact(n.Ref(), "no waiting pod of "+ownerText(c)+" is meant for it", c.ofPod(diagnosis.That(diagnosis.Meant, n.Name, diagnosis.Is, "0"))...)}}
}

func ownerText(c *Case) string {
	return fmt.Sprintf("%s/%s", c.Incident.Workload.Kind, c.Incident.Workload.Name)
}

// asksAlone says whether a requirement of the pod is not one of a pod that is meant for another node.
func asksAlone(c *Case, l terms.MissedLabel) bool {
	if len(c.meant) == 0 {
		return false
	}
	text := l.Text()
	if alone, known := c.alone[text]; known {
		return alone
	}
	if c.alone == nil {
		c.alone = map[string]bool{}
	}
	for _, m := range c.meant {
		if !terms.Asks(m.pod, l) {
			c.alone[text] = true
			return true
		}
	}
	c.alone[text] = false
	return false
}
