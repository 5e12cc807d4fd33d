package changes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// placedByKueue is for labels of the part of a topology that Kueue has chosen for the pod: no template has them,
// and a pod that is made again is given the same ones for as long as the Workload stays admitted
// (topologyAssignment in its status). nil where one is not of those.
func placedByKueue(c *Bench, missed []terms.MissedLabel) []edit.Change {
	w := c.Queue.Queued()
	if w == nil || len(missed) == 0 {
		return nil
	}
	levels := assignedLevels(w)
	if slices.ContainsFunc(missed, func(m terms.MissedLabel) bool { return !m.InSelector || !slices.Contains(levels, m.Key) }) {
		return nil
	}
	var chosen []string
	for _, level := range levels {
		if value := c.Pod.Spec.NodeSelector[level]; value != "" {
			chosen = append(chosen, level+"="+value)
		}
	}
	slices.Sort(chosen)
	return []edit.Change{c.Once("have Kueue choose its place again: it has chosen "+strings.Join(chosen, ", "), func(title string) edit.Change {
		ns, manager := queues.Manager(c.Cluster)
		again := fmt.Sprintf(`kubectl -n %s patch workloads.kueue.x-k8s.io %s --type merge -p '{"spec":{"active":%%t}}'`, w.GetNamespace(), w.GetName())
		ch := edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.NodeSelectorMismatch, Manual: true, Minutes: 1, Risk: diagnosis.LowRisk, Title: title, Drained: c.Cluster.Running(c.Incident.Workload),
			Pod: func(p *corev1.Pod) { unplace(p, levels) }}
		if len(ch.Drained) > 0 {
			ch.Risk = diagnosis.MediumRisk
		}
		ch.Commands = append(outOfPlace(c, levels), fmt.Sprintf(again, false)+"  # its pods go", fmt.Sprintf(again, true),
			fmt.Sprintf("kubectl -n %s rollout restart deployment %s  # if it chooses the same again though nothing is free there", ns, manager))
		return ch
	})}
}

// unplace takes out of a pod what Kueue has chosen.
func unplace(p *corev1.Pod, levels []string) {
	p.Spec.NodeSelector = maps.Clone(p.Spec.NodeSelector)
	maps.DeleteFunc(p.Spec.NodeSelector, func(key, _ string) bool { return slices.Contains(levels, key) })
}

// misplaced says whether Kueue has chosen a place for the pod by a topology though nodes that it could be on
// without a further toleration are elsewhere: their taints keep it from where it is.
func misplaced(c *Bench) bool {
	w := c.Queue.Queued()
	if w == nil {
		return false
	}
	free := c.Pod.DeepCopy()
	unplace(free, assignedLevels(w))
	if len(free.Spec.NodeSelector) == len(c.Pod.Spec.NodeSelector) {
		return false
	}
	return slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool {
		ok, err := nodeaffinity.GetRequiredNodeAffinity(free).Match(n.Node)
		return ok && err == nil && n.HasGPUs() && len(terms.Untolerated(free, n.Node)) == 0
	})
}

// outOfPlace are the commands for nodes that Kueue counts with where it goes by no node's name: there it does
// not look at taints (pkg/cache/scheduler/tas_flavor_snapshot.go), but it leaves cordoned nodes out.
func outOfPlace(c *Bench, levels []string) []string {
	if slices.Contains(levels, corev1.LabelHostname) {
		return nil
	}
	var out []string
	for _, n := range c.Cluster.SortedNodes() {
		if len(terms.Untolerated(c.Pod, n.Node)) > 0 && !n.Spec.Unschedulable && n.HasGPUs() && slices.ContainsFunc(levels, func(level string) bool { return n.Labels[level] != "" }) {
			out = append(out, "kubectl cordon "+n.Name+"  # Kueue counts with its room, for it looks at no taint where the Topology's lowest level is not "+corev1.LabelHostname)
		}
	}
	return out
}

// assignedLevels are the labels by which Kueue has placed a Workload's pods; none where it has not.
func assignedLevels(w *unstructured.Unstructured) []string {
	var out []string
	sets, _, _ := unstructured.NestedSlice(w.Object, "status", "admission", "podSetAssignments") //nolint:errcheck // what is no list places nothing
	for _, item := range sets {
		set, _ := item.(map[string]any)
		levels, _, _ := unstructured.NestedStringSlice(set, "topologyAssignment", "levels") //nolint:errcheck // as above
		out = append(out, levels...)
	}
	return out
}
