package claims

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
)

// restartOlder has a DRA driver's plugin start again, once somebody has looked, that runs for longer than what it looked at when
// it started: NVIDIA's driver, or its container toolkit, has started again on the node since, and what the plugin remembers of
// it may be of before. Where that is not so it leaves the change as it is.
func restartOlder(c *edit.Workload, p *corev1.Pod, look edit.Change) edit.Change {
	node, plugin := c.Cluster.Nodes[p.Spec.NodeName], driverOn(c, p.Spec.NodeName)
	if node == nil || plugin == nil || !strings.Contains(kubelet.UnpreparedSays(p), "NodePrepareResources failed") {
		return look
	}
	runs := runsSince(plugin)
	for _, o := range node.Pods {
		if by := metav1.GetControllerOfNoCopy(o); by == nil || by.Kind != "DaemonSet" || runs.IsZero() || !runsSince(o).After(runs) || !ofDriver(o) {
			continue
		}
		look.Title = fmt.Sprintf("restart the DRA driver's plugin on %s: it runs since %s, and %s/%s started there at %s", node.Name, diagnosis.Clock(runs), o.Namespace, o.Name, diagnosis.Clock(runsSince(o)))
		look.Untestable = "what the plugin remembers of the driver before is in no object"
		look.Commands = append(look.Commands, edit.EvictCommand(plugin)+"  # its DaemonSet makes it again; running pods keep their devices",
			fmt.Sprintf("kubectl -n %s get pods -w  # the kubelet has it prepared again by itself", p.Namespace))
		look.Risk, look.Minutes, look.Drained = diagnosis.LowRisk, 2, []*corev1.Pod{plugin}
		return look
	}
	return look
}

// ofDriver says whether a pod is the GPU Operator's driver, or its container toolkit.
func ofDriver(p *corev1.Pod) bool {
	return p.Labels["app"] == "nvidia-container-toolkit-daemonset" || strings.HasPrefix(p.Labels["app"], "nvidia-driver-daemonset")
}

// runsSince is when the last of a pod's containers started; zero where one of them does not run.
func runsSince(p *corev1.Pod) time.Time {
	var last time.Time
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running == nil {
			return time.Time{}
		}
		if s.State.Running.StartedAt.After(last) {
			last = s.State.Running.StartedAt.Time
		}
	}
	return last
}
