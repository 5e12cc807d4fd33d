package layouts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// capacityGone is how long the kubelet keeps the capacity of a device plugin that
// went away (devicemanager endpointStopGracePeriod, 1.36.3): without it, pending
// has lasted at least so long.
const capacityGone = 5 * time.Minute

// ConfigStuck tells: pending for longer than MIG manager ever waits, with the
// components paused: errors on that way leave the label as it is
// (NVIDIA/mig-parted#485).
func ConfigStuck(c *view.Cluster, n *view.Node, _ *Short) *view.Finding {
	if n.Manager().State != "pending" {
		return nil
	}
	since, known := labelSetAt(n, view.LabelMIGState)
	certainty, how := diagnosis.Proven, fmt.Sprintf("pending since %s", since.UTC().Format("15:04 MST"))
	switch {
	case known && c.State.Now.Sub(since) > stuckAfter:
	case !known && capacityLost(n):
		certainty, how = diagnosis.Likely, fmt.Sprintf("pending, and capacity is gone, which takes %s", capacityGone)
	default:
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, %s", view.LabelMIGConfig, n.Labels[view.LabelMIGConfig], how), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...)}
	says, who := stillThere(n)
	return view.Found(certainty, "MIG manager is stuck"+says, append(evidence, who...)...)
}

// Lingering are the pods of components that MIG manager has stopped and waits for.
func Lingering(n *view.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for _, label := range PausedComponents(n) {
		component := strings.TrimPrefix(label, "nvidia.com/gpu.deploy.")
		for _, p := range n.Pods {
			by := metav1.GetControllerOfNoCopy(p)
			if by != nil && by.Kind == "DaemonSet" && p.DeletionTimestamp != nil && (strings.HasPrefix(by.Name, "nvidia-"+component) || by.Name == component) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// PausedComponents are the labels, sorted, of the components that MIG manager has stopped
// on the node.
func PausedComponents(n *view.Node) []string {
	var out []string
	for name, value := range n.Labels {
		if strings.HasPrefix(name, "nvidia.com/gpu.deploy.") && value == view.Paused {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// capacityLost says that GPU resources were registered and are all gone.
func capacityLost(n *view.Node) bool {
	keys := 0
	for name, q := range n.Status.Capacity {
		if view.IsGPU(name) {
			if keys++; q.Sign() > 0 {
				return false
			}
		}
	}
	return keys > 0
}
