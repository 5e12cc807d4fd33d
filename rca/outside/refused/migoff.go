package refused

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// migEnabled is the label by which KAI is told whether a node has MIG, whatever its resources say (scheduler flag
// --mig-worker-node-label-key).
const migEnabled = "node-role.kubernetes.io/mig-enabled"

// sayMIGIsOff is for the scheduler that keeps pods without a profile from a node where MIG is switched off: the keys of
// a former layout stay in its status, at 0, and it counts them. Nil where no such node has what the pod asks.
func sayMIGIsOff(c *edit.Workload, by, look, logs string) *edit.Change {
	for _, n := range c.Cluster.SortedNodes() {
		if n.Labels[view.LabelMIGStrategy] != "mixed" || n.Labels[migEnabled] != "" || !formerLayout(n) || !hasAll(c, n) {
			continue
		}
		ch := edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("tell %s that MIG is off on %s: label %s=false", by, n.Name, migEnabled), by+" decides by its own rules, which are not run here",
			fmt.Sprintf("kubectl label node %s %s=false  # it goes by that before the keys nvidia.com/mig-*, which stay in a node's status, at 0, when its layout is gone; take it off again before MIG is switched on", n.Name, migEnabled),
			fmt.Sprintf("kubectl get node %s -o jsonpath='{.status.allocatable}'", n.Name), look, logs)
		ch.Risk = diagnosis.LowRisk
		return &ch
	}
	return nil
}

// formerLayout says whether a node names MIG profiles and has an instance of none.
func formerLayout(n *view.Node) bool {
	named := false
	for name, q := range n.Status.Capacity {
		if !strings.HasPrefix(string(name), view.MIGPrefix) {
			continue
		}
		if !q.IsZero() {
			return false
		}
		named = true
	}
	return named
}

// hasAll says whether a node offers as many GPUs as are asked.
func hasAll(c *edit.Workload, n *view.Node) bool {
	for _, a := range c.Asks {
		if !n.Has(a.Resource, a.Count) {
			return false
		}
	}
	return len(c.Asks) > 0
}
