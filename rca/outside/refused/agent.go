package refused

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack/parts"
)

// koordlet is the DaemonSet whose pod reports a node's devices to Koordinator's scheduler (object Device); of a node without a
// report that takes none, whatever the node offers (koordinator pkg/scheduler/plugins/deviceshare).
const koordlet = "koordlet"

// haveAgent has the agent of the scheduler run on the node with GPUs of which the scheduler has no report; nil where it runs on all.
func haveAgent(c *edit.Workload, by string) *edit.Change {
	at := slices.IndexFunc(c.Cluster.State.DaemonSets, func(d *appsv1.DaemonSet) bool { return d.Name == koordlet })
	if at < 0 {
		return nil
	}
	d := parts.Asked(c.Cluster.State.DaemonSets[at])
	for _, n := range c.Cluster.SortedNodes() {
		if !n.HasGPUs() || !n.AdvertisesAny() || d.On(n) != nil {
			continue
		}
		ch := edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("have DaemonSet %s/%s run on %s: without its report %s takes the node for one without devices", d.Namespace, d.Name, n.Name, by), by+" decides by its own rules, which are not run here",
			fmt.Sprintf("kubectl -n %s get pods -o wide | grep %s", d.Namespace, d.Name), "kubectl get devices.scheduling.koordinator.sh "+n.Name)
		if m := d.Misses(n); !m.None() {
			way := d.Let(n, m, "", nil)
			ch.Title += "; " + d.Text(n, m)
			ch.Commands = append(way.Commands, ch.Commands...)
			if way.Edits {
				ch.Drained = d.Rolled(c.Cluster)
			}
		}
		return &ch
	}
	return nil
}
