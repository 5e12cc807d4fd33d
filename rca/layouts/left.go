package layouts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// bootTime is how long a machine that MIG manager reboots may take until its kubelet is there again.
const bootTime = 10 * time.Minute

// Left says whether MIG manager was at work on a node whose kubelet has not been Ready for longer than a boot takes: nothing runs
// there that could go on with it, whatever its label says.
func Left(c *view.Cluster, n *view.Node) bool {
	if state := n.Manager().State; state == "" || state == "success" {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(k corev1.NodeCondition) bool {
		return k.Type == corev1.NodeReady && k.Status != corev1.ConditionTrue && !k.LastTransitionTime.IsZero() && c.State.Now.Sub(k.LastTransitionTime.Time) > bootTime
	})
}
