package relayout

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/view"
)

// modeChanges lists what MIG manager could do for the request by switching MIG on. The
// GPUs are reset for it, or the node is rebooted, so all of the node's pods leave but
// those that belong to it.
func (c *Planner) modeChanges(n *view.Node, a view.Ask) []Way {
	if n.Geometry == nil || n.Unreadable || !n.HoldersKnown || n.Geometry.Report.Source != nodeprobe.SourceNVML || n.Manager().Strategy != "mixed" {
		return nil
	}
	var ways []*view.NamedMode
	for i, m := range c.Cluster.ModesOf(n) {
		if m.Config != n.Manager().Config && m.Made[a.Profile] >= a.Count {
			ways = append(ways, &c.Cluster.ModesOf(n)[i])
		}
	}
	if len(ways) == 0 {
		return nil
	}
	leave, ok := c.emptied(n)
	if !ok {
		return nil
	}
	out := make([]Way, len(ways))
	for i, m := range ways {
		out[i] = Way{Node: n, Config: m.Config, Wanted: m.Change.Layouts, Remade: m.Change.Remade, Victims: leave, Mode: &m.Change}
	}
	return out
}

// emptied are the pods that leave when all of a node's do; false when one may not.
func (c *Planner) emptied(n *view.Node) ([]*corev1.Pod, bool) {
	var leave []*corev1.Pod
	for _, p := range n.Pods {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") {
			continue
		}
		for _, p := range c.Cluster.Together(p) {
			if !c.MayLeave(p) {
				return nil, false
			}
			if !slices.Contains(leave, p) {
				leave = append(leave, p)
			}
		}
	}
	return leave, true
}
